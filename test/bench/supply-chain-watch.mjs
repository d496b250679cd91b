// Loaded into the broker with --import: tells its parent how long the event loop stood still since it was last asked.
import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 5

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
process.on('message', () => {
  // The histogram holds the time between two ticks of its timer.
  const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  process.send({ p99Ms: ms(delay.percentile(99)), maxMs: ms(delay.max) })
  delay.reset()
})
process.channel.unref()
