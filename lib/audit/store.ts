import { createBatcher, type Database, fixed } from '../db/index.ts'
import type { EvaluateRequest } from './flow.ts'
import type { PolicyVerdict } from './reply.ts'

/** Longest wait for a connection; verdicts that cannot be stored by then are lost. */
const CONNECTION_WAIT_MS = 1_000
const MAX_ROWS_PER_STATEMENT = 1_000

/** The verdicts of one flow. */
export interface FlowVerdicts {
  readonly request: EvaluateRequest
  readonly verdicts: readonly PolicyVerdict[]
}

interface Cause {
  readonly uuid: string
  readonly time_stamp: string
  readonly cause: string
}

/**
 * Stores verdicts and causes. Items that arrive while a statement is in flight leave with the next; one statement of
 * each kind at a time leaves the other write connections to ingest.
 */
export const createStore = (db: Database) => ({
  verdicts: createBatcher<FlowVerdicts, void>({
    lanes: 1,
    weight: ({ verdicts }) => verdicts.length,
    maxWeight: MAX_ROWS_PER_STATEMENT,
    run: async (items) => {
      const rows = JSON.stringify(items.flatMap(rowsOf))
      await db.ingest.once(CONNECTION_WAIT_MS, (sql) => INSERT_VERDICTS(sql, rows))
      return items.map(() => undefined)
    },
  }),
  cause: createBatcher<Cause, void>({
    lanes: 1,
    key: ({ uuid, time_stamp }) => time_stamp + uuid,
    run: async (causes) => {
      await db.ingest((sql) => UPDATE_CAUSES(sql, JSON.stringify(causes)))
      return causes.map(() => undefined)
    },
  }),
})

const INSERT_VERDICTS = fixed(`
  insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, src_namespace, src_pod,
                             dst_namespace, dst_pod, dst_port, protocol, reason, observed_at, verdict)
  select i.policy_uid, i.policy_namespace, i.policy_name, i.direction, i.src_namespace, i.src_pod,
         i.dst_namespace, i.dst_pod, i.dst_port, i.protocol, i.reason, now() at time zone 'utc', i.verdict
  from json_to_recordset($1::text::json) as i(
    policy_uid text, policy_namespace text, policy_name text, direction text, src_namespace text, src_pod text,
    dst_namespace text, dst_pod text, dst_port bigint, protocol text, reason text, verdict text)`)

const UPDATE_CAUSES = fixed(`
  update traffic t set drop_cause = i.cause
  from json_to_recordset($1::text::json) as i(uuid text, time_stamp timestamp, cause text)
  where t.time_stamp = i.time_stamp and t.uuid = i.uuid`)

function rowsOf({ request, verdicts }: FlowVerdicts): object[] {
  const flow = {
    src_namespace: request.srcPodNamespace ?? null,
    src_pod: request.srcPodName ?? null,
    dst_namespace: request.dstPodNamespace ?? null,
    dst_pod: request.dstPodName ?? null,
    dst_port: request.dstPort,
    protocol: request.protocol,
  }
  return verdicts.map((verdict) => ({ ...verdict, ...flow }))
}
