/**
 * Random histories for the model of coverage. A scene is a few integers, and 0 means covered, so that faults stay rare.
 */
import fc from 'fast-check'
import type { Beat, Instance, Pod, Scene } from './coverage-model.ts'

/** Ages in seconds at which results change: limits of lateness and of windows, and values beside them. */
const LANDMARKS = [
  ...[0, 1, 62, 63, 64, 300, 600, 959, 960, 961, 1_260, 1_261, 3_599, 3_600, 3_601, 5_000, 7_199, 7_200, 7_201, 10_860],
  ...[10_861, 14_460, 14_461, 50_000, 86_399, 86_400, 86_401, 172_800, 259_260, 259_261, 400_000, 3_000_000],
]
const HOURS = [24, 1, 2, 3, 14]
const ODD_HOURS = [0, -4, 720, 2 ** 31 - 1, -(2 ** 31)]
const CADENCES = [300, 3_600, 1, 86_400]
const CONTAINERS = ['app', 'side']
const IMAGES = ['sha256:a', '']
const PODS = ['p0', 'p1', 'p2']

const bits = fc.nat(2 ** 30 - 1)

/** Reads an integer piece by piece. */
class Bits {
  #left: number

  constructor(value: number) {
    this.#left = value
  }

  /** One of the values, each equally likely. */
  below(count: number): number {
    const digit = this.#left % count
    this.#left = Math.floor(this.#left / count)
    return digit
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }

  /** True once in this many times. */
  once(inTimes: number): boolean {
    return this.below(inTimes) === inTimes - 1
  }
}

function beatOf(value: number, odd: number, isOwned: boolean, trackedAgo: number): Beat {
  const [b, o] = [new Bits(value), new Bits(odd)]
  return {
    ago: b.of(LANDMARKS),
    mode: b.once(20) ? 'exec' : 'full',
    execProbe: !b.once(20),
    libProbe: !b.once(20),
    attachedAgo: b.once(8) ? b.of(LANDMARKS) : null,
    lost: b.once(14) ? 3 : 0,
    unsent: b.once(12) ? 2 : 0,
    incomplete: b.once(12),
    ended: b.once(8),
    everySecs: b.of(CADENCES),
    trackedAgo: o.once(8) ? o.of(LANDMARKS) : trackedAgo,
    knowsImage: !o.once(10),
    knowsWorkload: !isOwned || !o.once(10),
  }
}

const drawnInstance = fc.record({
  whose: bits,
  posts: fc.array(fc.array(fc.tuple(bits, bits), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 }),
})
const drawnScene = fc.record({
  asked: bits,
  pods: fc.array(bits, { maxLength: 3 }),
  instances: fc.oneof(
    { weight: 9, arbitrary: fc.array(drawnInstance, { minLength: 1, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(drawnInstance, { maxLength: 0 }) },
  ),
})

/** A workload with its pods and containers, and the query about it. */
export interface Drawn extends Scene {
  /** The owner of the pods: the workload, none, or an incomplete one. */
  readonly owner: 'workload' | 'none' | 'half'
  readonly kind: string
  readonly name: string
  readonly container: string
  readonly image: string
  readonly hours: number
}

interface DrawnInstance {
  readonly whose: number
  readonly posts: readonly (readonly (readonly [number, number])[])[]
}

function instanceOf(podName: string, isOwned: boolean, { whose, posts }: DrawnInstance): Instance {
  const b = new Bits(whose)
  const [container, image] = [b.once(6) ? CONTAINERS[1]! : CONTAINERS[0]!, b.once(8) ? IMAGES[1]! : IMAGES[0]!]
  const [isBackfilled, isInOrder, isLong] = [b.once(4), !b.once(4), !b.once(4)]
  const trackedAgo = isLong ? 3_000_000 : b.of(LANDMARKS)
  const made = posts.map((post) => post.map(([value, odd]) => beatOf(value, odd, isOwned, trackedAgo)))
  // In posted order, or each newer than the one before.
  if (isInOrder) made.sort((x, y) => y[0]!.ago - x[0]!.ago)
  return {
    pod: podName,
    container,
    image,
    startMode: isBackfilled ? 'backfill' : 'start',
    posts: made,
  }
}

export const scene: fc.Arbitrary<Drawn> = drawnScene.map(({ asked, pods, instances }) => {
  const b = new Bits(asked)
  const hours = b.once(8) ? b.of(ODD_HOURS) : b.of(HOURS)
  const owner = b.of(['workload', 'workload', 'workload', 'none', 'half'] as const)
  const [container, image] = [b.once(9) ? CONTAINERS[1]! : CONTAINERS[0]!, b.once(9) ? IMAGES[1]! : IMAGES[0]!]
  const names = owner === 'workload' ? PODS : PODS.slice(0, 1)
  return {
    owner,
    kind: owner === 'workload' ? 'Deployment' : 'Pod',
    name: owner === 'workload' ? 'web' : PODS[0]!,
    container,
    image,
    hours,
    pods: pods.slice(0, names.length).map((value, n): Pod => {
      const p = new Bits(value)
      const running = p.of([['app'], ['app', 'side'], ['side'], [], null])
      return { name: names[n]!, isDead: p.once(4), running }
    }),
    instances: instances.map((one) => instanceOf(new Bits(one.whose >>> 8).of(names), owner === 'workload', one)),
    suffixes: b.once(12) ? [{ container: 'app', image: b.of(IMAGES) }] : [],
  }
})
