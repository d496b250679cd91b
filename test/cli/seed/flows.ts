import {
  daysAgo,
  flowOf,
  podOf,
  SHOP,
  SHOP_FLOWS,
  SHOP_SERVICES,
  seed,
  serviceOf,
} from '../../support/policy-cluster.ts'
import type { SeededApp } from '../cluster.ts'

/** A screen is cleared, a link hides its target, text runs backwards, a line is forged. */
export const HOSTILE = 'a\u001b[2J\u001b]8;;http://x\u0007\u202e\u2066b\u200d\u009bm\r\n- forged'

const probe = podOf({ namespace: 'lab', name: 'probe-1', ip: 'fd00:1::1', workload: 'DaemonSet/probe' })
const hostile = podOf({ namespace: 'lab', name: HOSTILE, ip: '10.1.3.9', workload: `Deployment/${HOSTILE}` })
const formula = podOf({ namespace: 'lab', name: '=1+1, "x"', ip: '10.1.3.8' })
/** Nobody posts it: its labels and its workload are not known. */
const ghost = podOf({ namespace: 'lab', name: 'ghost-1', ip: '10.1.3.7' })
const ntp = serviceOf('lab', 'ntp', '10.96.0.30', { selector: { app: 'ntp' }, ports: [{ port: 123, protocol: 'UDP' }] })

/** Flows of every kind of peer, dropped ones, UDP, IPv6, without a direction, and with hostile names. */
const LAB_FLOWS = [
  flowOf(probe, 'EGRESS', '2001:4860:4860::8888', '443', { time_stamp: daysAgo(9, '10:00:00') }),
  flowOf(probe, 'EGRESS', '10.96.0.30', '123', { ip_protocol: 'UDP', time_stamp: daysAgo(9, '10:00:01') }),
  flowOf(probe, 'EGRESS', '172.31.0.9', '9999', {
    ...{ decision: 'DROP', drop_cause: 'NO_RESPONSE', syn_retries: 3, time_stamp: daysAgo(9, '10:00:02') },
  }),
  flowOf(hostile, 'EGRESS', '10.1.0.2', '8080', { time_stamp: daysAgo(9, '10:00:03') }),
  flowOf(formula, 'INGRESS', '10.1.3.9', '8443', { time_stamp: daysAgo(9, '10:00:04') }),
  { ...flowOf(probe, 'EGRESS', '10.1.0.1', '3000', { time_stamp: daysAgo(9, '10:00:05') }), traffic_type: 'FORWARD' },
  flowOf(ghost, 'EGRESS', '10.1.0.2', '8080', { time_stamp: daysAgo(9, '10:00:06') }),
]

export const seedFlows = (app: SeededApp): Promise<void> =>
  seed(app, [...Object.values(SHOP), probe, hostile, formula], [...SHOP_SERVICES, ntp], [...SHOP_FLOWS, ...LAB_FLOWS])
