import { z } from 'zod'
import {
  MAX_ADDRESS_CHARS,
  MAX_ID_CHARS,
  MAX_NAME_CHARS,
  MAX_WORD_CHARS,
  NAIVE_TIME_RULE,
  NO_NULL_PATTERN,
  naiveTimeText,
} from '../http/request/fields.ts'
import { listOf } from '../http/request/first-fault.ts'
import { canonicalAddress } from '../net/address.ts'
import { documentedAs } from '../openapi/declare.ts'
import { parseNaive } from '../time/timestamp.ts'

const LIMITS = {
  uuid: MAX_ID_CHARS,
  pod_name: MAX_NAME_CHARS,
  pod_namespace: MAX_NAME_CHARS,
  pod_ip: MAX_ADDRESS_CHARS,
  pod_port: MAX_WORD_CHARS,
  ip_protocol: MAX_WORD_CHARS,
  traffic_type: MAX_WORD_CHARS,
  traffic_in_out_ip: MAX_ADDRESS_CHARS,
  traffic_in_out_port: MAX_WORD_CHARS,
  decision: MAX_WORD_CHARS,
  drop_cause: MAX_WORD_CHARS,
} as const

const limited = (field: keyof typeof LIMITS) => z.string().meta({ maxLength: LIMITS[field], pattern: NO_NULL_PATTERN })
const text = (field: keyof typeof LIMITS) => limited(field).nullish()

/**
 * Types only: a length rule on each of twelve fields would cost three times the rest of the schema, see `validateFlow`.
 */
const Shape = z
  .object({
    uuid: limited('uuid'),
    pod_name: text('pod_name'),
    pod_namespace: text('pod_namespace'),
    pod_ip: text('pod_ip'),
    pod_port: text('pod_port'),
    ip_protocol: text('ip_protocol'),
    traffic_type: text('traffic_type'),
    traffic_in_out_ip: text('traffic_in_out_ip'),
    traffic_in_out_port: text('traffic_in_out_port'),
    decision: text('decision'),
    time_stamp: naiveTimeText,
    drop_cause: text('drop_cause'),
    syn_retries: documentedAs(z.number(), {
      type: 'integer',
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
    }).nullish(),
  })
  .meta({ id: 'TrafficPost' })

/** A posted flow, its time in canonical form (docs/contract.md#flows). Unknown keys are dropped, including `peer_*`. */
export type Flow = z.output<typeof Shape>

const MAX_CHARS = Object.entries(LIMITS) as [field: keyof typeof LIMITS, chars: number][]

type BrokenRule = [field: keyof Flow, rule: string]

/** Returns the first broken rule beyond types; puts the time into canonical form. */
function validateFlow(flow: Flow): BrokenRule | null {
  const time = parseNaive(flow.time_stamp)
  if (time === null) return ['time_stamp', NAIVE_TIME_RULE]
  flow.time_stamp = time
  if (flow.syn_retries != null && !Number.isSafeInteger(flow.syn_retries)) return ['syn_retries', 'expected an integer']
  if (!isLong(flow)) return null
  for (const [field, chars] of MAX_CHARS)
    if ((flow[field]?.length ?? 0) > chars) return [field, `more than ${chars} characters`]
  return null
}

/** Whether any field exceeds the shortest limit. Spelled out: a loop over names would cost more than the rest. */
function isLong(f: Flow): boolean {
  return (
    f.uuid.length > MAX_WORD_CHARS ||
    (f.pod_name != null && f.pod_name.length > MAX_WORD_CHARS) ||
    (f.pod_namespace != null && f.pod_namespace.length > MAX_WORD_CHARS) ||
    (f.pod_ip != null && f.pod_ip.length > MAX_WORD_CHARS) ||
    (f.pod_port != null && f.pod_port.length > MAX_WORD_CHARS) ||
    (f.ip_protocol != null && f.ip_protocol.length > MAX_WORD_CHARS) ||
    (f.traffic_type != null && f.traffic_type.length > MAX_WORD_CHARS) ||
    (f.traffic_in_out_ip != null && f.traffic_in_out_ip.length > MAX_WORD_CHARS) ||
    (f.traffic_in_out_port != null && f.traffic_in_out_port.length > MAX_WORD_CHARS) ||
    (f.decision != null && f.decision.length > MAX_WORD_CHARS) ||
    (f.drop_cause != null && f.drop_cause.length > MAX_WORD_CHARS)
  )
}

/** The body of POST /pod/traffic. */
export const FlowPost = Shape.check((payload) => {
  const { value: flow, issues } = payload
  const broken = validateFlow(flow)
  if (broken) issues.push({ code: 'custom', path: [broken[0]], message: broken[1], input: flow })
})

/** Agents keep at most 1,000 for the next attempt; 2 MiB hold some 7,000 typical flows. */
export const MAX_BATCH_FLOWS = 10_000

/** The body of POST /pod/traffic/batch: the first bad element refuses all of it. */
export const FlowBatch = listOf(FlowPost, MAX_BATCH_FLOWS)

/** Puts both addresses into canonical form, before any comparison (docs/contract.md#addresses-and-times). */
export function canonicalize(flow: Flow): Flow {
  if (flow.pod_ip) flow.pod_ip = canonicalAddress(flow.pod_ip)
  if (flow.traffic_in_out_ip) flow.traffic_in_out_ip = canonicalAddress(flow.traffic_in_out_ip)
  return flow
}

const DAY_LENGTH = 'YYYY-MM-DD'.length

/** The day and the uuid, which no two stored flows share: random uuids have no other order, and an index needs one. */
export const uuidOfDay = ({ time_stamp, uuid }: { time_stamp: string; uuid: string }) =>
  time_stamp.slice(0, DAY_LENGTH) + uuid

/**
 * The keys by which flows are compared (docs/contract.md#deduplication): all six members, and five without one of the
 * ports, each as one string, which is unambiguous since members hold no U+0000. A key is null if a member is null,
 * which equals nothing. Flows that share none of the three keys are no duplicates.
 */
export interface MatchKeys {
  readonly all: string | null
  readonly podPort: string | null
  readonly peerPort: string | null
}

export function matchKeys(f: Flow): MatchKeys {
  if (f.pod_ip == null || f.traffic_type == null || f.traffic_in_out_ip == null || f.decision == null)
    return { all: null, podPort: null, peerPort: null }
  const pair = `${f.pod_ip}\0${f.traffic_in_out_ip}\0${f.traffic_type}\0${f.decision}`
  return {
    all:
      f.pod_port == null || f.traffic_in_out_port == null ? null : `${pair}\0a${f.pod_port}\0${f.traffic_in_out_port}`,
    podPort: f.pod_port == null ? null : `${pair}\0p${f.pod_port}`,
    peerPort: f.traffic_in_out_port == null ? null : `${pair}\0q${f.traffic_in_out_port}`,
  }
}

/** The key of repeats of a flow: its six members and its kind of protocol; null if a member is null. */
export function flowKey({ ip_protocol }: Flow, { all }: MatchKeys): string | null {
  return all === null ? null : `${ip_protocol === 'UDP' ? 'u' : 't'}${all}`
}

/** The seven members that identify repeats within one body, where nulls are equal. */
export function repeatKey(f: Flow): string {
  return JSON.stringify(
    [f.ip_protocol, f.pod_ip, f.pod_port, f.traffic_type, f.traffic_in_out_ip, f.traffic_in_out_port, f.decision].map(
      (m) => m ?? null,
    ),
  )
}
