import { cpus } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'

const SAMPLE_MS = 3_000

/** Cores that the machine uses, from a sample of three seconds. A load average still has what ended a minute ago. */
export async function busyCores(): Promise<number> {
  const before = cpus()
  await delay(SAMPLE_MS)
  const after = cpus()
  let [busyMs, allMs] = [0, 0]
  for (const [i, { times }] of after.entries()) {
    const past = before[i]!.times
    const spentMs = times.user + times.nice + times.sys + times.irq - past.user - past.nice - past.sys - past.irq
    busyMs += spentMs
    allMs += spentMs + times.idle - past.idle
  }
  return (busyMs / allMs) * after.length
}
