/** Clusters in short words, for tests of policies that are made from what was seen. */
import type { Connection, End, Facts, PodGroup, Service, Watched, Workload } from '../../lib/policies/facts.ts'
import { withNotes, yamlOfPolicy } from '../../lib/policies/make/document.ts'
import { type MadePolicy, type MakeOptions, PolicyMaker } from '../../lib/policies/make/policy.ts'
import type { Labels } from '../../lib/policies/policy.ts'

export const OPTIONS: MakeOptions = {
  ...{ format: 'kubernetes', direction: 'both', cidr: 'exact', min_days: 7, output: 'yaml', acknowledgePartial: true },
  ...{ since: null, now: '2026-02-01T00:00:00', prefix: 'example.test' },
}
export const WATCHED: Watched = { since: '2026-01-01T08:00:00', silentNodes: [] }

/** `shop/Deployment/web` */
export function workloadOf(text: string): Workload {
  const [namespace, kind, name] = text.split('/') as [string, string, string]
  return { namespace, kind, name }
}

export const pods = (workload: string, labels: Labels, more: Partial<PodGroup> = {}): PodGroup => ({
  ...{ workload: workloadOf(workload), labels, selectorLabels: null, namedPorts: {}, isHostNetwork: false },
  ...{ isLiving: true, ips: [], ...more },
})

/** `shop/api` with ports such as `80:8080` or `53/UDP:dns`. */
export function service(text: string, selector: Labels | null, ...ports: string[]): Service {
  const [namespace, name] = text.split('/') as [string, string]
  return { namespace, name, selector, ports: ports.map(servicePort) }
}

function servicePort(text: string) {
  const [, port, protocol = 'TCP', target] = /^(\d+)(?:\/(\w+))?:(.*)$/.exec(text)!
  return { port: Number(port), protocol, targetPort: /^\d+$/.test(target!) ? Number(target) : target! }
}

/** `shop/Deployment/web`, `pod shop/web-1`, `service shop/api`, `node 192.168.0.1`, `external 1.1.1.1`, `unresolved -`. */
function endOf(text: string): End {
  const [type, rest] = text.split(' ') as [string, string | undefined]
  if (rest === undefined) return { type: 'workload', ...workloadOf(type) }
  if (type !== 'service' && type !== 'pod') return { type: type as 'node', ip: rest === '-' ? null : rest }
  const [namespace, name] = rest.split('/') as [string, string]
  return { type, namespace, name }
}

/** A connection such as `shop/Deployment/web > service shop/api 80/UDP`. */
export function seen(text: string, more: Partial<Connection> = {}): Connection {
  const [, from, to, port, protocol = 'TCP'] = /^(.*) > (.*) (\w+)(?:\/(\w+))?$/.exec(text)!
  return {
    ...{ from: endOf(from!), to: endOf(to!), port: port!, protocol, isDropped: false, seenBy: 'from', flows: 1 },
    ...{ firstSeenAt: '2026-01-01T09:00:00', lastNewAt: '2026-01-20T09:00:00', edgeId: null, ...more },
  }
}

export const make = (
  workload: string,
  facts: Partial<Facts>,
  options: Partial<MakeOptions> = {},
  watched: Partial<Watched> = {},
): Promise<MadePolicy> =>
  new PolicyMaker({ pods: [], services: [], connections: [], ...facts }, { ...OPTIONS, ...options }).make(
    workloadOf(workload),
    { ...WATCHED, ...watched },
  )

export const yamlOf = async (...of: Parameters<typeof make>): Promise<string> => yamlOfPolicy(await make(...of))

export const jsonOf = async (...of: Parameters<typeof make>): Promise<string> =>
  JSON.stringify(withNotes(await make(...of), { ...OPTIONS, ...of[2] }))
