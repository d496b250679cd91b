import assert from 'node:assert/strict'
import test from 'node:test'
import { flowEdges } from '../../jobs/flow-edges.ts'
import { startApp, TOKENS } from '../support/app.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS })
const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }
const { deps } = app

type Fields = Record<string, unknown>
interface Edge {
  from: Fields
  to: Fields
  port: string
  verdict: string
  flows: number
  pods: number
  seenBy: string[]
  firstSeenAt: string
  lastNewAt: string
}

const get = (query = '', more: Record<string, string> = {}) =>
  app.get(`/flows/edges${query}`, { headers: { ...headers, ...more } })
async function page(query = '') {
  const answer = await get(query)
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { items: Edge[]; nextAfter: string | null; asOf: string; unstamped: number }
}

const sends = async (path: string, body: unknown) => {
  const answer = await app.post(path, body, { headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` } })
  assert.equal(answer.status, 200, answer.text)
}
const run = () =>
  flowEdges.run({ config: deps.config, db: app.db, log: deps.log, signal: new AbortController().signal })

/** `shop/Deployment/web > shop/StatefulSet/db:5432 ALLOW 2 flows of 2 pods from,to`, in the order of the page. */
const sideText = ({ kind, namespace, name, workload, ip }: Fields) =>
  kind === 'workload' || kind === 'namespace'
    ? [namespace, ...(kind === 'workload' ? [workload] : [])].join('/')
    : `${kind} ${[namespace, name, ip].filter((one) => one !== null).join('/')}`
const lineOf = ({ from, to, port, verdict, flows, pods, seenBy }: Edge) =>
  `${sideText(from)} > ${sideText(to)}:${port} ${verdict} ${flows} of ${pods} ${seenBy.join()}`
const lines = async (query = '') => (await page(query)).items.map(lineOf).sort()

/** A time of yesterday. */
const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
const T = (time: string) => `${YESTERDAY}T${time}`
const pod = (
  pod_namespace: string,
  pod_name: string,
  pod_ip: string,
  more: Fields = {},
  labels: Fields = {},
  ports: Fields[] = [],
) => ({
  ...{ pod_namespace, pod_name, pod_ip, node_name: 'node-1', is_dead: false, time_stamp: T('09:00:00') },
  started_at: T('08:00:00'),
  pod_obj: {
    metadata: {
      uid: `uid-${pod_name}`,
      labels,
      ownerReferences: 'workload_kind' in more ? [{ kind: 'ReplicaSet' }] : [],
    },
    spec: { containers: [{ name: 'main', ports }] },
  },
  ...more,
})
const WEB = { workload_kind: 'Deployment', workload_name: 'web' }
const DB = { workload_kind: 'StatefulSet', workload_name: 'db' }
for (const one of [
  pod('shop', 'web-1', '10.0.0.1', WEB, { app: 'web' }),
  pod('shop', 'web-2', '10.0.0.2', WEB, { app: 'web' }),
  pod('shop', 'db-0', '10.0.0.3', DB, { app: 'db' }, [{ name: 'sql', containerPort: 15432 }]),
  pod('tools', 'debug', '10.0.2.1'),
  pod('kube-system', 'proxy-1', '192.168.0.1', { host_network: true }),
])
  await sends('/pod/spec', one)
await sends('/svc/spec', {
  ...{ svc_ip: '10.96.0.5', svc_name: 'db', svc_namespace: 'shop', time_stamp: T('09:00:00') },
  service_spec: { spec: { selector: { app: 'db' }, ports: [{ port: 5432, targetPort: 'sql' }, { port: 80 }] } },
})

let seconds = 0
const flow = (pod_namespace: string | null, pod_name: string, pod_ip: string, more: Fields) => ({
  ...{
    uuid: `flow-${seconds}`,
    pod_name,
    pod_namespace,
    pod_ip,
    pod_port: '0',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
  },
  ...{ decision: 'ALLOW', time_stamp: T(`10:00:${String(seconds++).padStart(2, '0')}`) },
  ...more,
})
const to = (traffic_in_out_ip: string | null, traffic_in_out_port: string, more: Fields = {}) => ({
  ...{ traffic_in_out_ip, traffic_in_out_port },
  ...more,
})
const from = (traffic_in_out_ip: string, pod_port: string) => ({
  ...{ traffic_type: 'INGRESS', traffic_in_out_ip, traffic_in_out_port: '0', pod_port },
})
await sends('/pod/traffic/batch', [
  flow('shop', 'web-1', '10.0.0.1', to('10.96.0.5', '5432')),
  flow('shop', 'web-2', '10.0.0.2', to('10.96.0.5', '5432')),
  flow('shop', 'db-0', '10.0.0.3', from('10.0.0.1', '15432')),
  flow('shop', 'web-1', '10.0.0.1', to('8.8.8.8', '443')),
  flow('shop', 'web-1', '10.0.0.1', to('8.8.8.9', '443')),
  flow('shop', 'web-1', '10.0.0.1', to('10.0.0.3', '22', { decision: 'DROP' })),
  flow('shop', 'db-0', '10.0.0.3', from('10.0.2.1', '15432')),
  flow('gone', 'old', '10.9.9.9', to('192.168.0.1', '10250')),
])

test('GET /flows/edges: a look', async () => {
  console.log(await run())
  console.log(JSON.stringify((await page()).items[0], null, 1))
  for (const q of [
    '',
    '?group=namespace',
    '?group=service',
    '?cidr=24',
    '?to_workload=shop/db',
    '?port=15432',
    '?port=5432',
    '?pod=shop/web-1',
    '?namespace=gone',
    '?workload=gone/x',
    '?limit=2&order=flows',
  ])
    console.log(q, await lines(q))
  console.log(await page('?limit=1'))
})
test('dbg', async () => {
  console.log(await app.sql`select traffic_type, pod_namespace, pod_name, peer_kind, flows, pods from flow_edge`)
  console.log(await app.sql`select * from flow_edge_pod`)
})
