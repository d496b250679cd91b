import type { Logger } from 'pino'
import type { UnknownReasons } from '../attestations/reasons.ts'
import type { AuditForwarder } from '../audit/index.ts'
import type { Config } from '../config/index.ts'
import type { Database } from '../db/index.ts'
import type { EdgeCache } from '../flows/edge-cache.ts'
import type { Followers } from '../flows/followers.ts'
import type { IncomingBodies } from '../http/request/incoming-bodies.ts'
import type { NoteIgnored, Rejections } from '../http/request/rejections.ts'
import type { Tokens } from '../http/tokens.ts'
import type { ImageTrust } from '../image-trust/index.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { Metrics } from '../metrics/index.ts'
import type { AgentClocks } from '../nodes/index.ts'
import type { DriftSeries } from '../profile/drift-series.ts'
import type { DenialInlet } from '../seccomp/denials/index.ts'
import type { Profiles } from '../seccomp/profiles.ts'
import type { Payloads } from '../supply-chain/payloads.ts'
import type { FlowWriter, SeenFlows } from '../traffic/index.ts'

/** The dependencies of handlers. Nothing is reached for at module level, so tests build their own. */
export interface Deps {
  config: Config
  log: Logger
  db: Database
  metrics: Metrics
  budget: MemoryBudget
  /** Memory for parsed request bodies. */
  bodies: MemoryBudget
  /** Memory for request bodies as bytes, before they are parsed. */
  incomingBodies: IncomingBodies
  /** Memory for decompressed request bodies. */
  unpacked: MemoryBudget
  authenticate: Tokens['authenticate']
  flows: FlowWriter
  /** The clients that follow flows. */
  followers: Followers
  edges: EdgeCache
  /** Null without an evaluator. */
  audit: AuditForwarder | null
  seen: SeenFlows
  agentClocks: AgentClocks
  /** Stores findings and SBOMs. */
  payloads: Payloads
  /** Counts unknown reason codes of attestation results. */
  unknownReasons: UnknownReasons
  imageTrust: ImageTrust
  /** The list of observed seccomp profiles, cached. */
  profiles: Profiles
  /** Counts and logs entries of bodies that were not stored. */
  rejections: Rejections
  /** Counts and logs unknown query parameters that a route ignored. */
  noteIgnored: NoteIgnored
  /** Stores and counts seccomp denials. */
  denials: DenialInlet
  /** The drift of workloads, for metrics. */
  drift: DriftSeries
  /** True after the first SIGTERM: answers then carry `Connection: close`. */
  draining: () => boolean
}

/** Adds what depends on the routes of the app. */
export interface AppDeps extends Deps {
  /** The OpenAPI document of the app, as JSON. */
  openApi: () => Buffer
  hasConsole: boolean
}
