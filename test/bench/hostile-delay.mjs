// Loaded into the broker with --import: tells its parent the longest that the event loop stood still since it was last asked.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 5

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
process.on('message', () => {
  // The histogram holds the time between two ticks of its timer.
  process.send({ maxMs: Math.max(0, delay.max / 1e6 - RESOLUTION_MS) })
  delay.reset()
})
process.channel.unref()
