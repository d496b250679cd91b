// Questions about flows: pages, streams, a follow over a kill, edges, completion.

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'

const ENV = { PEER_STALE_ALIVE_SECS: '0', POD_TRAFFIC_RETENTION_DAYS: '0' }
let dataDir
let b
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'broker-conformance-'))
  b = await startBroker({ env: ENV, dataDir })
  await seed()
})
after(async () => {
  await b?.stop()
  if (dataDir) await rm(dataDir, { recursive: true, force: true })
})

/** Two hours ago, and some seconds. */
const BASE = Math.floor(Date.now() / 1000) - 2 * 3600
const at = (seconds) => new Date((BASE + seconds) * 1000).toISOString().slice(0, 19)

async function sends(path, body) {
  const answer = await b.post(path, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

const pod = (pod_name, pod_ip, kind, workload, labels, ports = []) => ({
  ...{ pod_name, pod_ip, pod_namespace: 'shop', node_name: 'node-1', is_dead: false, time_stamp: at(0) },
  ...{ started_at: at(-3600), workload_kind: kind, workload_name: workload },
  pod_obj: {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod_name, uid: `uid-${pod_name}`, labels, ownerReferences: [{ kind: 'ReplicaSet', name: 'x' }] },
    spec: { containers: [{ name: 'main', ports }] },
  },
})
let count = 0
const flow = (pod_name, pod_ip, more) => ({
  ...{ uuid: `flow-${++count}`, pod_name, pod_namespace: 'shop', pod_ip, pod_port: '0', ip_protocol: 'TCP' },
  ...{ traffic_type: 'EGRESS', traffic_in_out_port: '0', decision: 'ALLOW', time_stamp: at(count) },
  ...more,
})

async function seed() {
  await sends('/pod/spec', pod('web-1', '10.0.0.1', 'Deployment', 'web', { app: 'web' }))
  await sends('/pod/spec', pod('web-2', '10.0.0.2', 'Deployment', 'web', { app: 'web' }))
  const sql = [{ name: 'sql', containerPort: 15432 }]
  await sends('/pod/spec', pod('db-0', '10.0.0.3', 'StatefulSet', 'db', { app: 'db' }, sql))
  await sends('/svc/spec', {
    ...{ svc_ip: '10.96.0.5', svc_name: 'db', svc_namespace: 'shop', time_stamp: at(0) },
    service_spec: { spec: { selector: { app: 'db' }, ports: [{ port: 5432, targetPort: 'sql' }] } },
  })
  const stored = await sends('/pod/traffic/batch', [
    flow('web-1', '10.0.0.1', { traffic_in_out_ip: '10.96.0.5', traffic_in_out_port: '5432' }),
    flow('web-2', '10.0.0.2', { traffic_in_out_ip: '10.96.0.5', traffic_in_out_port: '5432' }),
    flow('db-0', '10.0.0.3', { traffic_type: 'INGRESS', traffic_in_out_ip: '10.0.0.1', pod_port: '15432' }),
    flow('web-1', '10.0.0.1', { traffic_in_out_ip: '8.8.8.8', traffic_in_out_port: '443' }),
    flow('web-1', '10.0.0.1', { traffic_in_out_ip: '10.0.0.3', traffic_in_out_port: '22', decision: 'DROP' }),
  ])
  assert.equal(stored, 5)
}

const uuids = async (query) => {
  const answer = await b.get(`/flows?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json.items.map(({ uuid }) => uuid)
}

check('filters of flows: sides, exclusion, alternatives, port, range, order', async () => {
  assert.deepEqual(await uuids('order=oldest'), ['flow-1', 'flow-2', 'flow-3', 'flow-4', 'flow-5'])
  assert.deepEqual(await uuids('from_workload=shop/web&to_service=shop/db'), ['flow-2', 'flow-1'])
  assert.deepEqual(await uuids('from_pod=shop/web-1&to_workload=shop/StatefulSet/db'), ['flow-5', 'flow-3'])
  assert.deepEqual(await uuids('peer=external&peer=service&port=!443'), ['flow-2', 'flow-1'])
  assert.deepEqual(await uuids('label=app=web&verdict=DROP'), ['flow-5'])
  assert.deepEqual(await uuids(`since=${at(2)}&until=${at(4)}&order=oldest`), ['flow-2', 'flow-3'])
  const refused = await b.get('/flows?verdict=maybe')
  assert.equal(refused.status, 400)
  assert.match(refused.text, /verdict.*ALLOW.*DROP/)
})

check('pages of flows end, and a range without flows says what is kept', async () => {
  const found = []
  let after = ''
  do {
    const { json } = await b.get(`/flows?limit=2&after=${after}`)
    found.push(...json.items.map(({ uuid }) => uuid))
    after = json.nextAfter
  } while (after !== null)
  assert.deepEqual(found, ['flow-5', 'flow-4', 'flow-3', 'flow-2', 'flow-1'])
  const { json } = await b.get('/flows?since=2020-01-01T00:00:00&until=2021-01-01T00:00:00')
  assert.deepEqual([json.items, json.observedSince], [[], at(1)])
})

check('a stream and a table of flows are whole', async () => {
  const stream = await b.get('/flows?peer=service', { headers: { accept: 'application/x-ndjson' } })
  const lines = stream.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const last = lines.pop()
  assert.deepEqual([lines.length, last.end, last.count], [2, true, 2])
  const table = await b.get('/flows?peer=service&fields=uuid,to', { headers: { accept: 'text/csv' } })
  assert.equal(table.text.trim().split(/\r?\n/).length, 3)
})

/** Follows until `isEnough` of the lines; the lines up to the last token, and the token. */
async function follow(query, isEnough) {
  const stop = new AbortController()
  const sure = []
  const unsure = []
  let token
  let text = ''
  try {
    const answer = await fetch(`${b.url}/flows?follow=true&fields=uuid&${query}`, { signal: stop.signal })
    assert.equal(answer.status, 200)
    for await (const part of answer.body) {
      text += Buffer.from(part).toString()
      const lines = text.split('\n')
      text = lines.pop()
      for (const line of lines.map((one) => JSON.parse(one))) {
        if (line.uuid === undefined) {
          sure.push(...unsure.splice(0))
          token = line.resume
        } else unsure.push(line.uuid)
      }
      if (isEnough(sure)) break
    }
  } finally {
    stop.abort()
  }
  return { uuids: sure, token }
}

check('a follow goes on behind its token after the broker was killed, and loses and repeats nothing', async () => {
  const first = await follow(`since=${at(0)}`, ({ length }) => length >= 5)
  assert.deepEqual(first.uuids.sort(), ['flow-1', 'flow-2', 'flow-3', 'flow-4', 'flow-5'])
  await sends('/pod/traffic/batch', [
    flow('web-2', '10.0.0.2', { traffic_in_out_ip: '9.9.9.9', traffic_in_out_port: '53', ip_protocol: 'UDP' }),
  ])
  b.kill('SIGKILL')
  await b.exited
  b = await startBroker({ env: ENV, dataDir })
  await sends('/pod/traffic/batch', [flow('web-2', '10.0.0.2', { traffic_in_out_ip: '9.9.9.8', pod_port: '1' })])
  const second = await follow(`resume=${first.token}`, ({ length }) => length >= 2)
  assert.deepEqual(second.uuids.sort(), ['flow-6', 'flow-7'])
  const forged = await b.get('/flows?follow=true&resume=abc')
  assert.equal(forged.status, 400)
})

check('edges: the rows of the client and of the server of one connection are one, also through a service', async () => {
  const edges = await eventually(
    async () => {
      const { json } = await b.get('/flows/edges?from_workload=shop/web&to_workload=shop/db&verdict=ALLOW')
      return json.items.length === 1 && json.items[0].flows === 3 && json.items
    },
    { timeoutMs: 45_000, what: 'the flows are counted' },
  )
  const [{ from, to, port, protocol, pods, seenBy, firstSeenAt, lastNewAt }] = edges
  assert.deepEqual([from.workload, to.workload, port, protocol], ['Deployment/web', 'StatefulSet/db', '15432', 'TCP'])
  assert.deepEqual([pods, seenBy, firstSeenAt, lastNewAt], [3, ['from', 'to'], at(1), at(3)])
  const { json } = await b.get('/flows/edges?group=namespace&peer=external')
  assert.ok(json.items.every((edge) => edge.from.namespace === 'shop' && edge.to.kind === 'external'))
})

check('completion of the value of a filter', async () => {
  const { json } = await b.get('/flows/hints?field=workload&prefix=shop/d')
  assert.deepEqual(json.values, ['shop/StatefulSet/db'])
})

/** The names of the rules of a NetworkPolicy: the labels of the peers and the ports. */
const rulesOf = ({ spec }) =>
  ['ingress', 'egress'].flatMap((direction) =>
    (spec[direction] ?? []).map(({ from, to, ports }) => {
      const peers = (from ?? to).map(
        ({ podSelector, ipBlock }) => ipBlock?.cidr ?? Object.values(podSelector.matchLabels),
      )
      return `${direction} ${peers.flat().sort()} ${ports.map(({ port }) => port)}`
    }),
  )

check('network policies are made from both ends, tried, and refused while too little was observed', async () => {
  const made = (workload, query) => b.get(`/workloads/shop/${workload}/networkpolicy?output=json${query}`)
  const refused = await made('StatefulSet/db', '')
  assert.equal(refused.status, 409)
  assert.match(refused.text, /less than 7 days/)
  assert.equal(
    refused.headers.get?.('x-kguardian-capture-complete') ?? refused.headers['x-kguardian-capture-complete'],
    'false',
  )
  const db = await made('StatefulSet/db', '&min_days=0')
  assert.equal(db.status, 200, db.text)
  assert.ok(rulesOf(db.json).includes('ingress web sql'), db.text)
  const web = await made('Deployment/web', '&min_days=0')
  assert.ok(
    rulesOf(web.json).some((one) => one === 'egress db sql'),
    web.text,
  )
  const list = { apiVersion: 'v1', kind: 'List', items: [db.json, web.json] }
  const tried = await b.post('/networkpolicy/try', list)
  assert.equal(tried.status, 200, tried.text)
  // Of one flow no port was seen: a comment says that it is left out.
  const ports = tried.json.deniedEdges.map(({ port }) => port)
  assert.deepEqual([tried.json.allowed, ports], [3, ['0']], tried.text)
  db.json.spec.ingress = []
  const denied = await b.post('/networkpolicy/try?namespace=shop', { ...list, items: [db.json] })
  assert.ok(
    denied.json.deniedEdges.some(
      ({ from, to }) => from.workload === 'Deployment/web' && to.workload === 'StatefulSet/db',
    ),
    denied.text,
  )
  const bad = await b.post('/networkpolicy/try', {
    ...list,
    items: [{ ...db.json, spec: { podSelector: {}, ports: [] } }],
  })
  assert.equal(bad.status, 400)
  assert.match(bad.text, /document 1: items\[0\]\.spec\.ports: unknown field/)
})
