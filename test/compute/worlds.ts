/** Random histories of a few containers on a node or two, near every threshold. */
import fc from 'fast-check'
import type { Container, Thresholds, Wait } from '../../lib/compute/findings/index.ts'
import { container, type StoredHistory, type StoredMinute, wait, waitFor } from '../support/compute.ts'
import type { World } from './findings-reference.ts'

const MIB = 2 ** 20
const CONTAINERS = 3
const MINUTES = 8
const BYTES = 60

/**
 * Bytes that make the choices, one after another. When they are used up the first option is chosen, which is the quiet
 * one.
 */
class Choices {
  readonly #bytes: Uint8Array
  #at = 0
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }
  below(n: number): number {
    return (this.#bytes[this.#at++] ?? 0) % n
  }
  of<T>(...some: readonly T[]): T {
    return some[this.below(some.length)]!
  }
  /** A value for some of the minutes; the others have the quiet one, and most often all do. */
  series<T>(quiet: T, ...others: readonly T[]): (i: number) => T {
    const [which, mask] = [this.below(2 * others.length), this.below(256)]
    const value = others[which]
    return (i) => (value !== undefined && (mask === 255 || ((mask | 24) >> i) & 1) ? value : quiet)
  }
}

const LIMITS: Thresholds = {
  stallSome: 20,
  runqP99Ms: 20,
  minRunqEvents: 50,
  throttledRatio: 0.25,
  throttledRatioMax: 0.1,
  blameShare: 0.4,
  memStallSome: 10,
  refaultPerMin: 1_000,
}
/** With this total, unknown waits alone do not make the finding unattributed. */
const STRICT: Thresholds = { ...LIMITS, blameShare: 1.5, throttledRatioMax: 0.25, stallSome: 30, refaultPerMin: 999.5 }
export const SETTINGS = [LIMITS, STRICT]

/** Out of a thousand, so that shares are near 0.4 on both sides. */
const SPLITS = [
  [1_000],
  [400, 600],
  [399, 601],
  [600, 400],
  [410, 300, 290],
  [400, 350, 250],
  [399, 301, 300],
  [500, 500],
  [250, 250, 250, 250],
]

function waitsOf(c: Choices, me: Container, others: readonly Container[]): Wait[] {
  const split = c.of<number[]>([], ...SPLITS)
  const ghost = container({ podName: 'ghost', namespace: 'elsewhere' })
  const waits = split.map((waitNs) =>
    c.of(
      waitFor(others[0]!, waitNs),
      waitFor(others[1]!, waitNs),
      wait('system', 'kubelet.service', waitNs),
      wait('unknown', 'exited', waitNs),
      wait('kernel', 'kernel', waitNs),
      waitFor(ghost, waitNs),
      wait('unknown', 'cgroup:77', waitNs),
      wait('pod', 'pod:0badcafe', waitNs),
      wait('slice', 'machine.slice', waitNs),
      wait('system', 'sshd.service', waitNs),
    ),
  )
  return c.below(4) === 1 ? [...waits, waitFor(me, 5_000)] : waits
}

function historyOf(c: Choices, me: Container, others: readonly Container[]): StoredHistory {
  const count = c.of(5, 2, 3, 4, 5, 6, 7, 1, 0)
  // With seven rows in the window the first is not read, nor are rows older than the window.
  const spacing = count === 7 ? 40 : 60
  const isOld = c.of(false, false, false, true)
  const some = c.series(0, 20, 30, 19.99, 29.99, 99)
  const full = c.series(0, 9.99, 10, 0, 0)
  const latency = c.series<number | null>(null, 20_000, 19_999, 200_000, 199_999, 100, 40_000)
  const events = c.of<number | null>(50, 49, 100, null)
  const overflow = c.series(0, 1, 0, 0, 0, 0)
  const throttle = c.series(0, 0.1, 0.0999, 0.1001, 0.25, 0.2499, 0.5, 0.05)
  const usage = c.series(500, 499, 501, 1_000)
  const [request, requestBefore] = [c.of<number | null>(null, 500), c.of<number | null>(null, 500, 400)]
  const periods = c.of(600, 600, 600, 0)
  const memorySome = c.series(0, 10, 9.99, 20)
  const refaults = c.series(0, 1_000, 999, 5_000)
  const memoryFull = c.series(0, 9.99, 10, 0)
  const oom = c.series(0, 1, 0, 0)
  const high = c.series(0, 1, 0)
  const max = c.series(0, 1, 0)
  const limit = c.of<number | null>(null, 512 * MIB)
  const memory = c.of(400, 600, 399, 601, 50, 1_200) * MIB
  const growth = c.of(0, MIB, -MIB, 10)
  const memoryRequest = c.of<number | null>(null, 100 * MIB, 2_000 * MIB)
  const peak = c.of(0, 5)
  const waits = waitsOf(c, me, others)
  const isWaiting = c.series(true, false)
  const minutes = Array.from({ length: Math.min(count, MINUTES) }, (_, n): StoredMinute => {
    const i = count - 1 - n
    const isProbed = latency(i) !== null || overflow(i) > 0
    return {
      ageSecs: 20 + spacing * i + (isOld ? 330 : 0),
      resolutionSecs: 60,
      usageMillis: usage(i),
      requestMillis: i === 0 ? request : requestBefore,
      limitMillis: 1_000,
      periodUsec: 100_000,
      periods,
      throttledUsec: Math.round(throttle(i) * 600 * 100_000),
      cpuSomeAvg: some(i),
      cpuSomeMax: some(i) + peak,
      cpuFullMax: full(i),
      memoryBytes: memory - i * growth,
      memoryRequestBytes: memoryRequest,
      memoryLimitBytes: limit,
      memorySomeAvg: memorySome(i),
      memorySomeMax: memorySome(i) + peak,
      memoryFullMax: memoryFull(i),
      eventsHigh: high(i),
      eventsMax: max(i),
      oomKills: oom(i),
      refaults: refaults(i),
      runqCount: isProbed ? events : null,
      runqP99Us: latency(i),
      runqOverflow: isProbed ? overflow(i) : null,
      waits: isWaiting(i) ? waits : [],
    }
  })
  return { container: me, minutes }
}

export interface NamedWorld extends World {
  readonly namespaces: readonly string[]
}

/** `name` is in all names of it but those of its namespaces, which are shared by a group of worlds. */
export function worldOf(bytes: Uint8Array, name: string, group = name): NamedWorld {
  const node = (i: number) => `${name}-node-${i}`
  const namespaces = [`${group}-here`, `${group}-there`]
  const own = (i: number) => new Choices(bytes.subarray(i * BYTES, (i + 1) * BYTES))
  const choices = Array.from({ length: CONTAINERS }, (_, i) => own(i))
  const containers = choices.map((c, i) =>
    container({ podName: `${name}-pod-${i}`, namespace: c.of(...namespaces), node: node(c.of(1, 1, 1, 2)) }),
  )
  const pressures = own(CONTAINERS)
  return {
    namespaces,
    histories: containers.map((me, i) =>
      historyOf(choices[i]!, me, [containers[(i + 1) % CONTAINERS]!, containers[(i + 2) % CONTAINERS]!]),
    ),
    nodes: new Map([
      [node(1), pressures.of(0, 5, 4.99, 40)],
      [node(2), pressures.of(5, 0)],
    ]),
  }
}

export const worldBytes = fc.uint8Array({ minLength: CONTAINERS * BYTES + 2, maxLength: CONTAINERS * BYTES + 2 })
