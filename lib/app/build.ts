import type { Logger } from 'pino'
import { UnknownReasons } from '../attestations/index.ts'
import { AuditForwarder } from '../audit/index.ts'
import type { Config } from '../config/index.ts'
import type { Database } from '../db/index.ts'
import { EdgeCache } from '../flows/edge-cache.ts'
import { Followers } from '../flows/followers.ts'
import { IncomingBodies } from '../http/request/incoming-bodies.ts'
import { createNoteIgnored, Rejections } from '../http/request/rejections.ts'
import { createTokens, type Tokens } from '../http/tokens.ts'
import { evaluatorToken, ImageTrust } from '../image-trust/index.ts'
import { BODIES_KIB, BODY_WAIT_MS, INCOMING_BODIES_BYTES, UNPACKED_KIB } from '../limits/limits.ts'
import { MemoryBudget } from '../limits/memory-budget.ts'
import { createMetrics } from '../metrics/index.ts'
import { AgentClocks } from '../nodes/index.ts'
import { RateLimitedLog } from '../observability/rate-limited-log.ts'
import { DriftSeries } from '../profile/drift-series.ts'
import { DenialInlet } from '../seccomp/denials/index.ts'
import { openProfiles } from '../seccomp/index.ts'
import { PayloadReader, Payloads, startThread } from '../supply-chain/index.ts'
import { FlowWriter, SeenFlows } from '../traffic/index.ts'
import type { Deps } from './deps.ts'

/** Two generations of this size take some 28 MB with keys of about 100 characters. */
const SEEN_FLOWS_PER_GENERATION = 60_000
const SEEN_GENERATION_MS = 120_000

/** Builds what handlers use, on one database. */
export function buildDeps(options: {
  config: Config
  db: Database
  log: Logger
  tokens?: Tokens
  draining?: () => boolean
}): Deps {
  const { config, db, log, tokens = createTokens(options.config), draining = () => false } = options
  const seen = new SeenFlows({
    maxKeys: SEEN_FLOWS_PER_GENERATION,
    generationMs: SEEN_GENERATION_MS,
    now: () => performance.now(),
  })
  // Another server may lack the flows that the old one had confirmed.
  db.onPoolReplaced((gate) => {
    if (gate === 'ingest') seen.clear()
  })
  const metrics = createMetrics(config.wireNames)
  const { supplyChainMaxInflatedBytes: maxInflatedBytes } = config
  const reader = new PayloadReader({ startThread: () => startThread(maxInflatedBytes) })
  const audit =
    config.evaluatorUrl === null
      ? null
      : new AuditForwarder({
          url: config.evaluatorUrl,
          permits: config.auditInflightPermits,
          queueCapacity: config.auditQueueCapacity,
          timeoutMs: config.auditEvalTimeoutMs,
          db,
          log,
          metrics,
        })
  const lines = new RateLimitedLog(log)
  const rejections = new Rejections({ metrics, lines })
  const budget = new MemoryBudget({ totalKib: config.readMemoryBudgetMb * 1024, waitMs: config.readAcquireWaitMs })
  return {
    config,
    log,
    db,
    metrics,
    budget,
    bodies: bodyBudget(BODIES_KIB),
    incomingBodies: new IncomingBodies(INCOMING_BODIES_BYTES),
    unpacked: bodyBudget(UNPACKED_KIB),
    authenticate: tokens.authenticate,
    flows: new FlowWriter(db.ingest, seen, (flow) => audit?.offer(flow)),
    followers: new Followers(db, log),
    edges: new EdgeCache(),
    audit,
    seen,
    agentClocks: new AgentClocks(log),
    payloads: new Payloads({ reader, maxInflatedBytes, metrics, lines }),
    unknownReasons: new UnknownReasons({ log, metrics }),
    imageTrust: new ImageTrust({ url: config.evaluatorUrl, token: () => evaluatorToken(tokens.configured), log }),
    profiles: openProfiles({ db, config, metrics, budget, lines }),
    rejections,
    noteIgnored: createNoteIgnored({ metrics, lines }),
    denials: new DenialInlet({ db, metrics, wireNames: config.wireNames, rejections, lines }),
    drift: new DriftSeries(config.wireNames),
    draining,
  }
}

const bodyBudget = (totalKib: number) =>
  new MemoryBudget({
    totalKib,
    waitMs: BODY_WAIT_MS,
    refusal: (kib, total) => `too many bodies at once: ${kib} KiB of ${total} KiB; retry in a moment, or add replicas`,
  })
