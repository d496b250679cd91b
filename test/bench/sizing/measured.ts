/** The figures that the estimate is made from, as they are stored beside this file. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { Used } from './meter.ts'
import type { Table } from './topics.ts'

const FILE = new URL('measured.json', import.meta.url)

/** Posts of one kind, or passes of a job. */
export interface Work extends Used {
  /** 0 for a job. */
  readonly requests: number
  /** Pods, flows, files and so on, in all. */
  readonly entries: number
}

/** Kinds of posts: the route, and what an entry is. */
export const POSTS = {
  newPods: ['POST /pod/spec', 'a pod that is new'],
  knownPods: ['POST /pod/spec', 'a known pod'],
  services: ['POST /svc/spec', 'a known service'],
  nodeFacts: ['POST /node/facts', 'a known node'],
  syscalls: ['POST /pod/syscalls', 'a pod with new names'],
  newFlows: ['POST /pod/traffic/batch', 'a new flow, a hundred a post'],
  fewNewFlows: ['POST /pod/traffic/batch', 'a new flow, five a post'],
  knownFlows: ['POST /pod/traffic/batch', 'a known flow, a hundred a post'],
  evaluatedFlows: ['POST /pod/traffic/batch', 'a new flow, with an evaluator that finds four verdicts'],
  samples: ['POST /pod/compute/batch', 'a sample of a container'],
  nodeSamples: ['POST /pod/compute/batch', 'a node without containers'],
  minutes: ['POST /pod/compute/history/batch', 'a minute of a container'],
  newExecutables: ['POST /runtime/executables', 'a new file'],
  knownExecutables: ['POST /runtime/executables', 'a known file'],
  newHeartbeats: ['POST /runtime/coverage', 'a new container'],
  heartbeats: ['POST /runtime/coverage', 'a known container'],
  capabilities: ['POST /runtime/capabilities', 'a known capability'],
  denials: ['POST /seccomp/denials', 'a new kind of denial'],
  drains: ['POST /seccomp/denials', 'a node without denials'],
  nodeFiles: ['POST /seccomp/node-status', 'a node with the files that it had'],
  newFindings: ['POST /images/{digest}/vulnerabilities', 'a new finding'],
  knownFindings: ['POST /images/{digest}/vulnerabilities', 'a known finding'],
  components: ['POST /images/{digest}/sbom', 'a new component'],
} as const satisfies Record<string, readonly [route: string, entry: string]>
export type PostName = keyof typeof POSTS

/** Jobs whose work grows with what is posted, by the start of their names, and what an entry is. */
export const JOBS = {
  'flow-edges': 'a flow',
  'compute-': 'a minute of a container',
  'supply-chain-refresh': 'a finding or component',
  'profile-snapshots': 'a profile',
} as const
export type JobName = keyof typeof JOBS

export interface Simulation {
  readonly date: string
  readonly nodes: number
  readonly minutes: number
  readonly replicas: number
  /** Cores of the machine that were busy when it began. */
  readonly load: number
  /** That were due, and that were answered. */
  readonly requestsPerSecond: number
  readonly answersPerSecond: number
  readonly requests: number
  /** Other answers than 200. */
  readonly failed: number
  readonly posts: readonly {
    readonly post: PostName
    readonly requests: number
    readonly p50Ms: number
    readonly p95Ms: number
    readonly p99Ms: number
  }[]
  readonly brokerCores: number
  readonly postgresCores: number
  readonly predictedBrokerCores: number
  readonly predictedPostgresCores: number
  /** Of the largest replica. */
  readonly peakMib: number
  readonly rows: number
  readonly predictedRows: number
  readonly bytes: number
  readonly predictedBytes: number
}

export interface Measured {
  readonly date: string
  /** Hours of the day that had passed, in UTC: days of history go as a whole. */
  readonly hoursOfDay: number
  readonly machine: {
    readonly cores: number
    readonly memoryGib: number
    readonly postgres: string
    readonly node: string
    /** Cores that were busy when it began. */
    readonly load: number
  }
  readonly connections: number
  readonly posts: Readonly<Record<PostName, Work>>
  readonly jobs: Readonly<Record<JobName, Work>>
  /** The history of compute before it is rolled up. */
  readonly freshMinutes: { readonly entries: number; readonly rows: number; readonly bytes: number }
  readonly tables: readonly Table[]
  readonly simulation: Simulation | null
}

export const readMeasured = () => JSON.parse(readFileSync(FILE, 'utf8')) as Measured
export const writeMeasured = (measured: Measured) => writeFileSync(FILE, `${JSON.stringify(measured, null, 2)}\n`)
