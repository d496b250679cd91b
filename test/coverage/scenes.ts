/** Random small clusters for the report of coverage. Small numbers stand for the usual. */
import fc from 'fast-check'
import type { Source, Via } from '../supply-chain/in-use-model.ts'
import { SOURCES } from '../supply-chain/in-use-model.ts'
import { WATCHES } from '../supply-chain/in-use-scenes.ts'

export const IMAGES = 4
export const NODES = 3
/** Days that the scans of payloads are old; a report is old after 30 of them. */
const AGES = [1, 10, 29, 31, 90]

export interface PayloadStory {
  readonly image: number
  readonly source: Source
  readonly via: Via
  readonly kind: 'vulnerabilities' | 'sbom'
  readonly ageDays: number
  /** Whether a list of one of its findings was cut. */
  readonly isCut: boolean
}

export interface ContainerStory {
  /** The image in each pod; null is not resolved. */
  readonly images: readonly (number | null)[]
  /** How the container of each pod is watched, and whether its agent knows the image. */
  readonly watches: readonly { readonly name: string; readonly knowsImage: boolean }[]
  readonly states: readonly (string | null)[]
}

export interface PodStory {
  readonly node: number
  readonly isDead: boolean
  /** The level at which it sent syscalls; `none` sent nothing. */
  readonly capture: 'full' | 'high' | 'custom' | 'none'
}

export interface WorkloadStory {
  readonly namespace: number
  readonly kind: 'Deployment' | 'Pod'
  readonly pods: readonly PodStory[]
  readonly containers: readonly ContainerStory[]
  /** Whether its rows of the inventory were last reported before the window in which they count as running. */
  readonly isAged: boolean
}

export interface NodeStory {
  readonly hasFacts: boolean
  readonly isSilent: boolean
  readonly drain: 'none' | 'current' | 'late' | 'detached'
}

export interface CoverageStory {
  readonly workloads: readonly WorkloadStory[]
  readonly payloads: readonly PayloadStory[]
  /** The verdict of each image; null was never checked. */
  readonly verdicts: readonly (string | null)[]
  readonly nodes: readonly NodeStory[]
  /** Namespaces with a denial of a pod that nobody knows. */
  readonly blind: readonly boolean[]
}

const MAX_PODS = 2
const once = (inTimes: number) => fc.nat(inTimes - 1).map((n) => n === inTimes - 1)
const two = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: MAX_PODS, maxLength: MAX_PODS })

const container: fc.Arbitrary<ContainerStory> = fc.record({
  images: two(fc.oneof({ weight: 6, arbitrary: fc.nat(IMAGES - 1) }, { weight: 1, arbitrary: fc.constant(null) })),
  watches: two(
    fc.record({
      name: fc.constantFrom('covered', 'covered', ...Object.keys(WATCHES)),
      knowsImage: once(6).map((no) => !no),
    }),
  ),
  states: two(fc.constantFrom('running', 'running', 'running', 'running', 'crash', 'terminated', 'waiting', null)),
})

const workload: fc.Arbitrary<WorkloadStory> = fc.record({
  ...{ namespace: fc.nat(1), kind: fc.constantFrom('Deployment', 'Deployment', 'Pod'), isAged: once(4) },
  pods: fc.array(
    fc.record({
      ...{ node: fc.nat(NODES - 1), isDead: once(5) },
      capture: fc.constantFrom('full', 'full', 'full', 'high', 'custom', 'none'),
    }),
    { minLength: 1, maxLength: MAX_PODS },
  ),
  containers: fc.array(container, { minLength: 1, maxLength: 2 }),
})

const payload: fc.Arbitrary<PayloadStory> = fc.record({
  ...{ image: fc.nat(IMAGES - 1), source: fc.constantFrom(...SOURCES), isCut: once(6) },
  via: fc.constantFrom<Via>('digest', 'digest', 'digest', 'index', 'tag'),
  ...{ kind: fc.constantFrom('vulnerabilities', 'sbom'), ageDays: fc.constantFrom(...AGES) },
})

export const coverageStory: fc.Arbitrary<CoverageStory> = fc.record({
  workloads: fc.array(workload, { minLength: 1, maxLength: 4 }),
  payloads: fc.uniqueArray(payload, {
    maxLength: 10,
    selector: ({ image, source, via, kind }) => `${image} ${source} ${via} ${kind}`,
  }),
  verdicts: fc.array(fc.constantFrom('verified', 'unsigned', 'unknown', null), {
    minLength: IMAGES,
    maxLength: IMAGES,
  }),
  nodes: fc.array(
    fc.record({
      ...{ hasFacts: once(3).map((no) => !no), isSilent: once(4) },
      drain: fc.constantFrom('current', 'current', 'none', 'late', 'detached'),
    }),
    { minLength: NODES, maxLength: NODES },
  ),
  blind: two(once(4)),
})
