/**
 * Policies made from what was posted equal those made from the same facts, and allow all of it: the reading of pods,
 * services and edges against clusters of any shape.
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Connection, End, Facts, Service } from '../../lib/policies/facts.ts'
import { PolicyMaker } from '../../lib/policies/make/policy.ts'
import { facts } from '../policies/fact-values.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { daysAgo, podOf, seed, serviceOf } from '../support/policy-cluster.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
const NODES = ['192.168.0.1', '192.168.0.2', 'fd00::1']
await seed(
  app,
  NODES.map((ip, n) => podOf({ namespace: 'nodes', name: `node-${n}`, ip, hostNetwork: true })),
  [],
  [],
)

let runs = 0

/** The same facts in namespaces and with addresses of their own, since flows are stored once. */
function renamed(known: Facts): Facts {
  runs++
  const suffix = `-${runs}`
  const text = JSON.stringify(known)
    .replace(/"namespace":"([a-z-]+)"/g, (_, name) => `"namespace":"${name}${suffix}"`)
    .replace(
      /"10\.1\.(\d+)\.(\d+)"/g,
      (_, a, b) => `"10.${100 + (runs >> 8)}.${runs & 255}.${Number(a) * 10 + Number(b)}"`,
    )
    .replace(/"fd10::/g, `"fd10:${runs.toString(16)}::`)
  return JSON.parse(text)
}

const nameOf = (workload: { name: string; namespace: string }, revision: number) =>
  `${workload.namespace}-${workload.name}-${revision}`

async function post(known: Facts): Promise<void> {
  const revisions = new Map<string, number>()
  const pods = known.pods.map(({ workload, labels, selectorLabels, namedPorts, isLiving, ips }) => {
    const revision = revisions.get(workload.name) ?? 0
    revisions.set(workload.name, revision + 1)
    return podOf({
      ...{ namespace: workload.namespace, name: nameOf(workload, revision), ip: ips[0]!, labels },
      workload: `${workload.kind}/${workload.name}`,
      ...(selectorLabels === null ? {} : { selector: selectorLabels }),
      ports: ['TCP', 'UDP'].flatMap((protocol) =>
        Object.entries(namedPorts ?? {}).map(([name, containerPort]) => ({ name, containerPort, protocol })),
      ),
      more: { is_dead: !isLiving, pod_ips: ips },
    })
  })
  const ipOfService = new Map(known.services.map((one, n) => [one.name, `10.96.${runs % 250}.${n}`]))
  const services = known.services.map((one) =>
    serviceOf(one.namespace, one.name, ipOfService.get(one.name)!, specOf(one)),
  )
  const podsOf = (end: End) => pods.filter((one) => end.type === 'workload' && one.workload_name === end.name)
  const ipOf = (end: End) =>
    end.type === 'workload'
      ? podsOf(end)[0]!.pod_ip
      : end.type === 'service'
        ? ipOfService.get(end.name)!
        : (end as { ip: string }).ip
  const flows = known.connections.map((connection, n) => {
    const { from, to, port, protocol, isDropped, seenBy } = connection
    const [own, peer] = seenBy === 'from' ? [from, to] : [to, from]
    const pod = podsOf(own)[0]!
    // A port of its own on the other side, or UDP would be one flow.
    const ports = seenBy === 'from' ? [String(20_000 + n), port] : [port, String(20_000 + n)]
    return {
      uuid: `00000000-${String(runs).padStart(4, '0')}-4000-8000-${String(n).padStart(12, '0')}`,
      ...{ pod_name: pod.pod_name, pod_namespace: pod.pod_namespace, pod_ip: pod.pod_ip, pod_port: ports[0] },
      ...{ traffic_type: seenBy === 'from' ? 'EGRESS' : 'INGRESS', traffic_in_out_ip: ipOf(peer) },
      ...{ traffic_in_out_port: ports[1], ip_protocol: protocol, decision: isDropped ? 'DROP' : 'ALLOW' },
      time_stamp: daysAgo(10),
    }
  })
  // A flow of TCP suppresses one of UDP with the same port that comes later (docs/contract.md#deduplication).
  const udpFirst = flows.toSorted((a, b) => Number(b.ip_protocol === 'UDP') - Number(a.ip_protocol === 'UDP'))
  await seed(app, pods, services, udpFirst)
}

const specOf = ({ selector, ports }: Service) => ({ selector, ports })

/** Each kind of connection only once: the port on the other side does not count. */
const distinct = (connections: readonly Connection[]) => [
  ...new Map(
    connections.map((one) => [
      JSON.stringify([one.from, one.to, one.port, one.protocol, one.isDropped, one.seenBy]),
      one,
    ]),
  ).values(),
]

const OPTIONS = {
  ...{ direction: 'both' as const, min_days: 0, output: 'json' as const, acknowledgePartial: true, since: null },
  ...{ now: daysAgo(0), prefix: 'kguardian.dev' },
}
const choice = fc.record({
  format: fc.constantFrom('kubernetes' as const, 'cilium' as const),
  cidr: fc.constantFrom('exact' as const, '24' as const),
})

test('policies from posted pods, services and flows are those from the same facts, and deny none of them', async () => {
  let rules = 0
  await fc.assert(
    fc.asyncProperty(facts, choice, async (generated, chosen) => {
      const known = renamed({ ...generated, connections: distinct(generated.connections) })
      await post(known)
      const maker = new PolicyMaker(known, { ...OPTIONS, ...chosen })
      const workloads = [...new Map(known.pods.map(({ workload }) => [workload.name, workload])).values()]
      const made: object[] = []
      for (const { namespace, kind, name } of workloads) {
        const query = `output=json&acknowledgePartial=true&min_days=0&format=${chosen.format}&cidr=${chosen.cidr}`
        const { status, json, text } = await app.get(`/workloads/${namespace}/${kind}/${name}/networkpolicy?${query}`)
        assert.equal(status, 200, text)
        const { manifest } = await maker.make({ namespace, kind, name }, { since: null, silentNodes: [] })
        assert.deepEqual(json.spec, JSON.parse(JSON.stringify(manifest.spec)))
        made.push(json)
        rules += JSON.stringify(json.spec).split('"ports"').length - 1
      }
      const { json, text } = await app.request('POST', '/networkpolicy/try', {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: made }),
      })
      assert.equal(json.denied, 0, text)
      assert.equal(json.policies.length, workloads.length)
    }),
    { numRuns: depth(20, 1_000) },
  )
  assert.ok(rules > 100, `${rules} rules`)
})
