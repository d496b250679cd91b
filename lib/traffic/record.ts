import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'

const text = z.string().nullable()

/** A flow in the form of all reads, keys in wire order (docs/contract.md#flows). */
export const TrafficRow = z
  .strictObject({
    uuid: z.string(),
    pod_name: text,
    pod_namespace: text,
    pod_ip: text,
    pod_port: text,
    ip_protocol: text,
    traffic_type: text.describe('`INGRESS` or `EGRESS`, as posted.'),
    traffic_in_out_ip: text.describe('The address of the peer.'),
    traffic_in_out_port: text,
    decision: text.describe('`ALLOW` or `DROP`, as posted.'),
    time_stamp: wireTime,
    peer_kind: z
      .enum(['pod', 'node', 'service'])
      .nullable()
      .describe('Null while the peer is not known: then the other six are null, too.'),
    peer_namespace: text,
    peer_name: text.describe('Of a pod or service; for a node, of the pod on its network.'),
    peer_uid: text,
    peer_workload_kind: text,
    peer_workload_name: text,
    peer_resolved_at: wireTime.nullable(),
    drop_cause: text,
    syn_retries: z.int().nullable(),
  })
  .meta({ id: 'TrafficRow' })
