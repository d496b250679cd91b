import { z } from 'zod'
import { address, id, naiveTime, name, word } from '../http/fields.ts'
import { canonicalAddress } from '../net/address.ts'

/** A flow as an agent posts it (interop-core 1.4). Unknown keys are dropped, the client's `peer_*` among them. */
export const Flow = z.object({
  uuid: id,
  pod_name: name.nullish(),
  pod_namespace: name.nullish(),
  pod_ip: address.nullish(),
  pod_port: word.nullish(),
  ip_protocol: word.nullish(),
  traffic_type: word.nullish(),
  traffic_in_out_ip: address.nullish(),
  traffic_in_out_port: word.nullish(),
  decision: word.nullish(),
  time_stamp: naiveTime,
  drop_cause: word.nullish(),
  syn_retries: z.int().nullish(),
})
export type Flow = z.output<typeof Flow>

/** Puts both addresses into canonical form, before anything compares them (interop-core 2.3). */
export function canonicalize(flow: Flow): Flow {
  if (flow.pod_ip) flow.pod_ip = canonicalAddress(flow.pod_ip)
  if (flow.traffic_in_out_ip) flow.traffic_in_out_ip = canonicalAddress(flow.traffic_in_out_ip)
  return flow
}

/**
 * The six members of the deduplication key and the branch that the protocol takes, as one string; null when a member is
 * null, since such a flow matches no stored row. Members hold no U+0000, so the string is unambiguous.
 */
export function flowKey(f: Flow): string | null {
  if (!hasWholeKey(f)) return null
  return `${f.ip_protocol === 'UDP' ? 'u' : 't'}${f.pod_ip}\0${f.pod_port}\0${f.traffic_type}\0${f.traffic_in_out_ip}\0${f.traffic_in_out_port}\0${f.decision}`
}

/** Flows that could be duplicates of each other have the same pair: every rule compares these four members. */
export function pairKey(f: Flow): string {
  return `${f.pod_ip}\0${f.traffic_in_out_ip}\0${f.traffic_type}\0${f.decision}`
}

function hasWholeKey(f: Flow): boolean {
  return (
    f.pod_ip != null &&
    f.pod_port != null &&
    f.traffic_type != null &&
    f.traffic_in_out_ip != null &&
    f.traffic_in_out_port != null &&
    f.decision != null
  )
}

/**
 * Whether `later` is a duplicate of `earlier`, were that one stored: all six members equal, or for a UDP event five of them
 * with either port left out (interop-core section 3 and D13). A null equals nothing. Both are of one pair.
 */
export function isDuplicate(later: Flow, earlier: Flow): boolean {
  const samePodPort = later.pod_port != null && later.pod_port === earlier.pod_port
  const samePeerPort = later.traffic_in_out_port != null && later.traffic_in_out_port === earlier.traffic_in_out_port
  if (later.pod_ip == null || later.traffic_type == null || later.traffic_in_out_ip == null || later.decision == null) return false
  return later.ip_protocol === 'UDP' ? samePodPort || samePeerPort : samePodPort && samePeerPort
}

/** The seven members that make a repeat inside one body, nulls being equal there. */
export function repeatKey(f: Flow): string {
  return JSON.stringify(
    [f.ip_protocol, f.pod_ip, f.pod_port, f.traffic_type, f.traffic_in_out_ip, f.traffic_in_out_port, f.decision].map((m) => m ?? null),
  )
}
