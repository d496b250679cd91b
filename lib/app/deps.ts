import type { Logger } from 'pino'
import type { UnknownReasons } from '../attestations/reasons.ts'
import type { AuditForwarder } from '../audit/index.ts'
import type { Config } from '../config.ts'
import type { Database } from '../db/index.ts'
import type { NoteIgnored } from '../http/request/ignored-parameters.ts'
import type { IncomingBodies } from '../http/request/incoming-bodies.ts'
import type { Rejections } from '../http/request/rejections.ts'
import type { Tokens } from '../http/tokens.ts'
import type { ImageTrust } from '../image-trust/index.ts'
import type { MemoryBudget } from '../limits/memory-budget.ts'
import type { AgentClocks } from '../nodes/index.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { DenialInlet } from '../seccomp/denials/index.ts'
import type { Profiles } from '../seccomp/profiles.ts'
import type { Payloads } from '../supply-chain/payloads.ts'
import type { FlowWriter, SeenFlows } from '../traffic/index.ts'

/** What handlers are given: nothing is reached for at module level. */
export interface Deps {
  config: Config
  log: Logger
  db: Database
  metrics: Metrics
  budget: MemoryBudget
  /** The same for request bodies, in the other direction. */
  bodies: MemoryBudget
  /** Request bodies before that, as bytes. */
  incomingBodies: IncomingBodies
  /** The same of those that came packed, from when they are unpacked. */
  unpacked: MemoryBudget
  authenticate: Tokens['authenticate']
  flows: FlowWriter
  /** Null without an evaluator. */
  audit: AuditForwarder | null
  seen: SeenFlows
  agentClocks: AgentClocks
  /** Findings and SBOMs on their way in. */
  payloads: Payloads
  /** Reason codes of attestation results that are not known. */
  unknownReasons: UnknownReasons
  imageTrust: ImageTrust
  /** Observed seccomp profiles as they are read. */
  profiles: Profiles
  /** Entries that were left out of what was stored. */
  rejections: Rejections
  /** Counts query parameters that a route did not know and ignored. */
  noteIgnored: NoteIgnored
  /** Seccomp denials on their way in. */
  denials: DenialInlet
  /** True from the first SIGTERM on: answers then carry `Connection: close`. */
  draining: () => boolean
}

/** What an app adds to it: what is known only with its routes. */
export interface AppDeps extends Deps {
  /** The OpenAPI document of the app, as JSON. */
  openApi: () => Buffer
}
