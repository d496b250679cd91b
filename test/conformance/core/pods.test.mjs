// Pods: upsert, liveness, look-ups and lists.

import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'

// Rows keep the liveness that a case gives them: no sweep, no late pass.
let b
before(async () => {
  b = await startBroker({ env: { PEER_STALE_ALIVE_SECS: '0', PEER_LATE_RESOLVE_WINDOW_SECS: '0' } })
})
after(async () => {
  await b?.stop()
})

const KEYS = [
  'pod_name',
  'pod_ip',
  'pod_namespace',
  'pod_obj',
  'time_stamp',
  'node_name',
  'is_dead',
  'pod_identity',
  'workload_selector_labels',
  'pod_ips',
  'workload_kind',
  'workload_name',
  'capture_level',
  'host_network',
  'started_at',
]
const MIB = 1024 * 1024

// Times are seconds after a base two hours ago: young enough for every retention window.
const BASE = Math.floor(Date.now() / 1000) - 2 * 3600
const at = (seconds, fraction = '') =>
  new Date((BASE + seconds) * 1000).toISOString().slice(0, 19) + (fraction && `.${fraction}`)

let count = 0
const name = (stem = 'pod') => `${stem}-p${String(++count).padStart(4, '0')}`
const address = () => {
  const n = ++count
  return `10.20.${n >> 8}.${n & 255}`
}
const address6 = () => `fd20::${(++count).toString(16)}`
const pod = (over = {}) => ({
  pod_name: name(),
  pod_ip: address(),
  pod_namespace: 'shop',
  time_stamp: at(600),
  node_name: 'node-shared',
  is_dead: false,
  started_at: at(0),
  ...over,
})
async function post(over) {
  const body = pod(over)
  const r = await b.post('/pod/spec', body)
  assert.equal(r.status, 200, r.text)
  return body
}
const byName = (n) => b.get(`/pod/name/${encodeURIComponent(n)}`)
const byIp = (ip, when) =>
  b.get(`/pod/ip/${encodeURIComponent(ip)}${when === undefined ? '' : `?at=${encodeURIComponent(when)}`}`)
function notFound(r) {
  assert.equal(r.status, 404, r.text)
  assert.equal(r.text, 'No data found')
}
const raw = (path, body, headers = { 'content-type': 'application/json' }) =>
  b.request('POST', path, { body, headers, raw: true })

/** Posts JSON in three pieces, resting between them, and stops as soon as an answer comes; answers its status. */
function sendLarge(path, text, { chunked = false } = {}) {
  const body = Buffer.from(text)
  return new Promise((ok, no) => {
    let status
    const req = httpRequest(
      `${b.url}${path}`,
      {
        method: 'POST',
        agent: false,
        headers: {
          'content-type': 'application/json',
          ...(chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': body.length }),
        },
      },
      (res) => {
        status = res.statusCode
        ok(status)
        req.destroy()
      },
    )
    req.on('error', (e) => {
      if (status === undefined) no(e)
    })
    ;(async () => {
      for (const [from, to] of [
        [0, 65_536],
        [65_536, 2 * MIB + 65_536],
        [2 * MIB + 65_536, body.length],
      ]) {
        if (status !== undefined || req.destroyed) return
        req.write(body.subarray(from, to))
        await sleep(200)
      }
      if (status === undefined && !req.destroyed) req.end()
    })()
  })
}

check('pods: a full record comes back on every read with its keys in order', async () => {
  const node = name('node')
  const body = {
    pod_name: name(),
    pod_ip: address(),
    pod_namespace: 'shop-full',
    pod_obj: { metadata: { name: 'x', uid: 'uid-1', labels: { app: 'x' } }, spec: { hostNetwork: false } },
    time_stamp: at(10),
    node_name: node,
    is_dead: false,
    pod_identity: 'x',
    workload_selector_labels: { app: 'x', tier: 'front' },
    pod_ips: [],
    workload_kind: 'Deployment',
    workload_name: 'x',
    capture_level: 'high',
    host_network: false,
    started_at: at(5),
  }
  const want = { ...body, pod_ips: [body.pod_ip] }
  const posted = await b.post('/pod/spec', body)
  assert.equal(posted.status, 200)
  const info = (await b.get('/pod/info')).json.filter((p) => p.pod_name === body.pod_name)
  const list = await b.get(`/pod/list/${node}`)
  assert.equal(info.length, 1)
  assert.equal(list.json.length, 1)
  for (const record of [
    posted.json,
    (await byName(body.pod_name)).json,
    (await byIp(body.pod_ip)).json,
    list.json[0],
    info[0],
  ]) {
    assert.deepEqual(Object.keys(record), KEYS)
    assert.deepEqual(record, want)
  }
})

check('pods: optional keys that were not sent read as null, pod_ips as the primary address', async () => {
  const body = { pod_name: name(), pod_ip: address(), time_stamp: at(10), node_name: 'node-min', is_dead: false }
  const want = {
    ...body,
    pod_namespace: null,
    pod_obj: null,
    pod_identity: null,
    workload_selector_labels: null,
    pod_ips: [body.pod_ip],
    workload_kind: null,
    workload_name: null,
    capture_level: null,
    host_network: null,
    started_at: null,
  }
  const posted = await b.post('/pod/spec', body)
  assert.equal(posted.status, 200)
  assert.deepEqual(Object.keys(posted.json), KEYS)
  assert.deepEqual(posted.json, want)
  assert.deepEqual((await byName(body.pod_name)).json, want)
})

check('pods: unknown keys are ignored', async () => {
  const body = await post({ colour: 'red', nested: { deep: [1, { a: null }] }, uuid: 17 })
  const read = await byName(body.pod_name)
  assert.deepEqual(Object.keys(read.json), KEYS)
})

check('pods: an empty or blank pod_name writes nothing and is 200', async () => {
  for (const blank of ['', '   ', '\t\n']) {
    const body = pod({ pod_name: blank })
    const r = await b.post('/pod/spec', body)
    assert.equal(r.status, 200)
    assert.equal(r.json.pod_name, blank)
    notFound(await byIp(body.pod_ip))
  }
})

check('pods: a second post of the same name replaces the row in place', async () => {
  const first = await post({ node_name: 'node-one', pod_identity: 'one' })
  const second = await post({
    pod_name: first.pod_name,
    node_name: 'node-two',
    pod_identity: 'two',
    pod_namespace: 'moved',
    time_stamp: at(700),
    started_at: at(650),
    is_dead: true,
  })
  const read = (await byName(first.pod_name)).json
  assert.equal(read.node_name, 'node-two')
  assert.equal(read.pod_identity, 'two')
  assert.equal(read.pod_namespace, 'moved')
  assert.equal(read.pod_ip, second.pod_ip)
  assert.deepEqual(read.pod_ips, [second.pod_ip])
  assert.equal(read.time_stamp, at(700))
  assert.equal(read.started_at, at(650))
  assert.equal(read.is_dead, true)
  notFound(await byIp(first.pod_ip))
  assert.equal((await b.get('/pod/info')).json.filter((p) => p.pod_name === first.pod_name).length, 1)
})

check('pods: an absent or null key keeps the stored value, and the answer shows what was posted', async () => {
  const first = await post({
    pod_identity: 'keep',
    workload_selector_labels: { app: 'keep' },
    workload_kind: 'DaemonSet',
    workload_name: 'keep',
    capture_level: 'full',
    host_network: true,
    pod_obj: { metadata: { uid: 'uid-keep' } },
  })
  const again = await b.post('/pod/spec', {
    pod_name: first.pod_name,
    pod_ip: first.pod_ip,
    time_stamp: at(900),
    node_name: 'node-later',
    is_dead: false,
    pod_identity: null,
    host_network: null,
  })
  assert.equal(again.status, 200)
  assert.equal(again.json.pod_identity, null)
  assert.equal(again.json.workload_kind, null)
  assert.equal(again.json.started_at, null)
  const read = (await byName(first.pod_name)).json
  assert.deepEqual(read, {
    pod_name: first.pod_name,
    pod_ip: first.pod_ip,
    pod_namespace: 'shop',
    pod_obj: { metadata: { uid: 'uid-keep' } },
    time_stamp: at(900),
    node_name: 'node-later',
    is_dead: false,
    pod_identity: 'keep',
    workload_selector_labels: { app: 'keep' },
    pod_ips: [first.pod_ip],
    workload_kind: 'DaemonSet',
    workload_name: 'keep',
    capture_level: 'full',
    host_network: true,
    started_at: at(0),
  })
})

const MANIFEST = {
  metadata: {
    name: 'web',
    namespace: 'shop',
    uid: 'uid-web',
    labels: { app: 'web' },
    annotations: { note: 'kept' },
    ownerReferences: [{ kind: 'ReplicaSet', name: 'web-1' }],
    managedFields: [{ manager: 'kubelet', fieldsV1: { 'f:metadata': {} } }],
  },
  spec: { hostNetwork: true, containers: [{ name: 'web', image: 'web:1' }], volumes: [{ name: 'v' }], nodeName: 'n' },
  status: { phase: 'Running', podIP: '10.0.0.1' },
}
const { managedFields: _dropped, ...METADATA } = MANIFEST.metadata

check('pods: pod_obj keeps metadata without managedFields, and spec.hostNetwork', async () => {
  const body = pod({ pod_obj: MANIFEST, node_name: name('node') })
  const want = { metadata: METADATA, spec: { hostNetwork: true } }
  const posted = await b.post('/pod/spec', body)
  assert.deepEqual(posted.json.pod_obj, want)
  assert.deepEqual((await byName(body.pod_name)).json.pod_obj, want)
  assert.deepEqual((await byIp(body.pod_ip)).json.pod_obj, want)
  assert.deepEqual((await b.get(`/pod/list/${body.node_name}`)).json[0].pod_obj, want)
  assert.deepEqual((await b.get('/pod/info')).json.find((p) => p.pod_name === body.pod_name).pod_obj, want)
})

check('pods: pod_obj without hostNetwork keeps no spec', async () => {
  const body = await post({ pod_obj: { metadata: { uid: 'u' }, spec: { containers: [] }, status: {} } })
  assert.deepEqual((await byName(body.pod_name)).json.pod_obj, { metadata: { uid: 'u' } })
})

check('pods: nothing but metadata and spec.hostNetwork remains of pod_obj', async () => {
  const body = await post({ pod_obj: { apiVersion: 'v1', kind: 'Pod', ...MANIFEST } })
  assert.deepEqual(Object.keys((await byName(body.pod_name)).json.pod_obj).sort(), ['metadata', 'spec'])
})

check('pods: host_network comes from the manifest unless the client sends it', async () => {
  const cases = [
    [{ pod_obj: { metadata: {}, spec: { hostNetwork: true } } }, true],
    [{ pod_obj: { metadata: {}, spec: { hostNetwork: false } } }, false],
    [{ pod_obj: { metadata: {}, spec: {} } }, false],
    [{ pod_obj: { metadata: {} } }, false],
    [{}, null],
    [{ pod_obj: null }, null],
    [{ host_network: false, pod_obj: { metadata: {}, spec: { hostNetwork: true } } }, false],
    [{ host_network: true, pod_obj: { metadata: {}, spec: {} } }, true],
    [{ host_network: true }, true],
  ]
  for (const [over, want] of cases) {
    const body = pod(over)
    assert.equal((await b.post('/pod/spec', body)).json.host_network, want, JSON.stringify(over))
    assert.equal((await byName(body.pod_name)).json.host_network, want, JSON.stringify(over))
  }
})

check('pods: started_at comes from status.startTime, converted to UTC, unless the client sends it', async () => {
  const utc = at(100)
  const offset = `${at(100 + 2 * 3600)}+02:00`
  const cases = [
    [{ started_at: undefined, pod_obj: { metadata: {}, status: { startTime: `${utc}Z` } } }, utc],
    [{ started_at: undefined, pod_obj: { metadata: {}, status: { startTime: offset } } }, utc],
    [{ started_at: null, pod_obj: { metadata: {}, status: { startTime: `${utc}Z` } } }, utc],
    [{ started_at: at(50), pod_obj: { metadata: {}, status: { startTime: `${utc}Z` } } }, at(50)],
    [{ started_at: undefined, pod_obj: { metadata: {}, status: { startTime: 'yesterday' } } }, null],
    [{ started_at: undefined, pod_obj: { metadata: {}, status: {} } }, null],
    [{ started_at: undefined }, null],
  ]
  for (const [over, want] of cases) {
    const body = pod(over)
    const posted = await b.post('/pod/spec', body)
    assert.equal(posted.status, 200)
    assert.equal(posted.json.started_at, want, JSON.stringify(over))
    assert.equal((await byName(body.pod_name)).json.started_at, want, JSON.stringify(over))
  }
})

check('pods: started_at fills in on a later post', async () => {
  const first = await post({ started_at: undefined })
  assert.equal((await byName(first.pod_name)).json.started_at, null)
  await post({ ...first, started_at: at(20) })
  assert.equal((await byName(first.pod_name)).json.started_at, at(20))
})

check('pods: pod_ips holds the primary address first, canonical and without repeats', async () => {
  const [v4, v6] = [address(), address6()]
  const long = v6.replace('::', ':0:0:0:0:0:00:').toUpperCase()
  const body = pod({ pod_ip: v4, pod_ips: [` ${long} `, v4, `::ffff:${v4}`, '', '  ', 7, null, v6] })
  const posted = await b.post('/pod/spec', body)
  assert.equal(posted.status, 200)
  assert.deepEqual(posted.json.pod_ips, [v4, v6])
  assert.deepEqual((await byName(body.pod_name)).json.pod_ips, [v4, v6])
})

check('pods: pod_ips that is not an array becomes the primary address alone', async () => {
  for (const odd of ['10.99.99.99', 5, {}, null]) {
    const body = await post({ pod_ips: odd })
    assert.deepEqual((await byName(body.pod_name)).json.pod_ips, [body.pod_ip])
  }
})

check('pods: pod_ips is recomputed on every post', async () => {
  const v6 = address6()
  const body = await post({ pod_ips: [v6] })
  assert.equal((await byIp(v6)).json.pod_name, body.pod_name)
  await post({ ...body, pod_ips: undefined })
  assert.deepEqual((await byName(body.pod_name)).json.pod_ips, [body.pod_ip])
  notFound(await byIp(v6))
})

check('pods: the primary address is stored in canonical form', async () => {
  const v6 = address6()
  const body = await post({ pod_ip: v6.toUpperCase().replace('::', ':0::0:') })
  const read = (await byName(body.pod_name)).json
  assert.equal(read.pod_ip, v6)
  assert.deepEqual(read.pod_ips, [v6])
})

check('pods: capture_level is trimmed and lower-cased, an unknown level is null', async () => {
  for (const [sent, want] of [
    ['full', 'full'],
    [' HIGH ', 'high'],
    ['Medium', 'medium'],
    ['low', 'low'],
    ['custom', 'custom'],
    ['extreme', null],
    ['', null],
    [null, null],
  ]) {
    const body = pod({ capture_level: sent })
    const posted = await b.post('/pod/spec', body)
    assert.equal(posted.status, 200)
    assert.equal(posted.json.capture_level, want)
    assert.equal((await byName(body.pod_name)).json.capture_level, want)
  }
})

check('pods: mark_dead by name keeps the row and its time', async () => {
  const body = await post({ node_name: name('node') })
  const r = await b.post('/pod/mark_dead', { pod_name: body.pod_name })
  assert.equal(r.status, 200)
  assert.equal(r.json, 1)
  const read = (await byName(body.pod_name)).json
  assert.equal(read.is_dead, true)
  assert.equal(read.time_stamp, body.time_stamp)
  assert.equal(read.pod_ip, body.pod_ip)
  assert.deepEqual((await b.get(`/pod/list/${body.node_name}`)).json, [])
})

check('pods: mark_dead with an address needs that primary address', async () => {
  const v6 = address6()
  const body = await post({ pod_ips: [v6] })
  for (const wrong of [address(), v6]) {
    const r = await b.post('/pod/mark_dead', { pod_name: body.pod_name, pod_ip: wrong })
    assert.equal(r.status, 200)
    assert.equal(r.json, 0)
    assert.equal((await byName(body.pod_name)).json.is_dead, false)
  }
  assert.equal((await b.post('/pod/mark_dead', { pod_name: body.pod_name, pod_ip: body.pod_ip })).json, 1)
  assert.equal((await byName(body.pod_name)).json.is_dead, true)
})

check('pods: mark_dead compares addresses in canonical form', async () => {
  const v6 = address6()
  const body = await post({ pod_ip: v6 })
  assert.equal(
    (await b.post('/pod/mark_dead', { pod_name: body.pod_name, pod_ip: v6.toUpperCase().replace('::', ':0:0::') }))
      .json,
    1,
  )
  assert.equal((await byName(body.pod_name)).json.is_dead, true)
})

check('pods: mark_dead with a blank or null address goes by name only', async () => {
  for (const blank of ['', '  ', null]) {
    const body = await post()
    assert.equal((await b.post('/pod/mark_dead', { pod_name: body.pod_name, pod_ip: blank })).json, 1)
    assert.equal((await byName(body.pod_name)).json.is_dead, true)
  }
})

check('pods: mark_dead of a blank or unknown name changes nothing', async () => {
  const bystander = await post()
  for (const n of ['', '  ', name('nobody')]) {
    const r = await b.post('/pod/mark_dead', { pod_name: n })
    assert.equal(r.status, 200)
    assert.equal(r.json, 0)
  }
  assert.equal((await byName(bystander.pod_name)).json.is_dead, false)
})

check('pods: mark_dead without a usable pod_name is 400', async () => {
  const body = await post()
  for (const bad of [
    {},
    { pod_ip: body.pod_ip },
    { pod_name: null },
    { pod_name: 5 },
    { pod_name: body.pod_name, pod_ip: 5 },
    [],
    null,
    'x',
  ]) {
    assert.equal((await b.post('/pod/mark_dead', bad)).status, 400, JSON.stringify(bad))
  }
  assert.equal((await byName(body.pod_name)).json.is_dead, false)
})

check('pods: a re-post sets is_dead as supplied', async () => {
  const body = await post()
  await b.post('/pod/mark_dead', { pod_name: body.pod_name })
  await post({ ...body, time_stamp: at(660) })
  assert.equal((await byName(body.pod_name)).json.is_dead, false)
  await post({ ...body, is_dead: true })
  assert.equal((await byName(body.pod_name)).json.is_dead, true)
})

check('pods: info is ordered by namespace then name, null namespaces last', async () => {
  const names = ['c', 'a', 'b'].map((s) => name(`order-${s}`))
  const spaces = ['orderb', 'ordera', 'orderc']
  for (const [i, ns] of [...spaces, null].entries())
    for (const n of names) await post({ pod_name: `${n}${i}`, pod_namespace: ns })
  const mine = (await b.get('/pod/info')).json
    .filter((p) => p.pod_name.startsWith('order-'))
    .map((p) => [p.pod_namespace, p.pod_name])
  const sorted = [...names].sort()
  assert.deepEqual(mine, [
    ...[1, 0, 2].flatMap((i) => sorted.map((n) => [spaces[i], `${n}${i}`])),
    ...sorted.map((n) => [null, `${n}3`]),
  ])
})

check('pods: info lists dead pods unless include_dead is false', async () => {
  const [live, dead] = [await post(), await post({ is_dead: true })]
  const has = async (query) => {
    const r = await b.get(`/pod/info${query}`)
    assert.equal(r.status, 200)
    const seen = new Set(r.json.map((p) => p.pod_name))
    return [seen.has(live.pod_name), seen.has(dead.pod_name)]
  }
  assert.deepEqual(await has(''), [true, true])
  assert.deepEqual(await has('?include_dead=true'), [true, true])
  assert.deepEqual(await has('?include_dead=false'), [true, false])
  assert.deepEqual(await has('?include_dead=false&other=1'), [true, false])
})

check('pods: a bad include_dead is 400', async () => {
  assert.equal((await b.get('/pod/info?include_dead=maybe')).status, 400)
})

check('pods: namespaces are those of live pods, sorted, distinct, without null', async () => {
  await post({ pod_namespace: 'nsfilterb' })
  await post({ pod_namespace: 'nsfiltera' })
  await post({ pod_namespace: 'nsfiltera' })
  await post({ pod_namespace: 'nsfilterdead', is_dead: true })
  await post({ pod_namespace: null })
  const r = await b.get('/pod/namespaces')
  assert.equal(r.status, 200)
  assert.ok(r.json.every((n) => typeof n === 'string'))
  assert.equal(new Set(r.json).size, r.json.length)
  assert.deepEqual(
    r.json.filter((n) => n.startsWith('nsfilter')),
    ['nsfiltera', 'nsfilterb'],
  )
})

check('pods: list holds the live pods of one node, ordered', async () => {
  const [node, other] = [name('node'), name('node')]
  const n = [1, 2, 3].map((i) => name(`listed-${i}`))
  await post({ pod_name: n[2], pod_namespace: 'lista', node_name: node })
  await post({ pod_name: n[0], pod_namespace: 'listb', node_name: node })
  await post({ pod_name: n[1], pod_namespace: 'lista', node_name: node })
  await post({ node_name: node, is_dead: true })
  await post({ node_name: other })
  const r = await b.get(`/pod/list/${node}`)
  assert.equal(r.status, 200)
  assert.deepEqual(
    r.json.map((p) => p.pod_name),
    [n[1], n[2], n[0]],
  )
  assert.ok(r.json.every((p) => p.is_dead === false && Array.isArray(p.pod_ips)))
})

check('pods: list of an unknown node is an empty array', async () => {
  const r = await b.get(`/pod/list/${name('node')}`)
  assert.equal(r.status, 200)
  assert.deepEqual(r.json, [])
})

check('pods: by name finds a dead row, and answers 404 for nobody', async () => {
  const body = await post({ is_dead: true })
  assert.equal((await byName(body.pod_name)).json.is_dead, true)
  notFound(await byName(name('nobody')))
})

check('pods: by ip matches the primary address and every other one', async () => {
  const [v4, v6] = [address(), address6()]
  const body = await post({ pod_ips: [v4, v6] })
  for (const ip of [body.pod_ip, v4, v6]) assert.equal((await byIp(ip)).json?.pod_name, body.pod_name, ip)
  notFound(await byIp(address()))
})

check('pods: by ip takes any spelling of an address', async () => {
  const v6 = address6()
  const six = await post({ pod_ip: v6 })
  const four = await post()
  for (const spelling of [v6, v6.toUpperCase(), v6.replace('::', ':0:0:0:0:0:0:'), v6.replace('::', ':0000::0:')]) {
    assert.equal((await byIp(spelling)).json?.pod_name, six.pod_name, spelling)
  }
  const hex = four.pod_ip.split('.').map((o) => Number(o).toString(16).padStart(2, '0'))
  for (const spelling of [`::ffff:${four.pod_ip}`, `::FFFF:${hex[0]}${hex[1]}:${hex[2]}${hex[3]}`]) {
    assert.equal((await byIp(spelling)).json?.pod_name, four.pod_name, spelling)
  }
})

check('pods: by ip without a time prefers the live row, then the newest', async () => {
  const ip = address()
  const old = await post({ pod_ip: ip, time_stamp: at(100) })
  await post({ pod_ip: ip, time_stamp: at(900), is_dead: true })
  assert.equal((await byIp(ip)).json.pod_name, old.pod_name)
  const newer = await post({ pod_ip: ip, time_stamp: at(200), started_at: undefined })
  assert.equal((await byIp(ip)).json.pod_name, newer.pod_name)
  const none = address()
  await post({ pod_ip: none, time_stamp: at(100), is_dead: true })
  const last = await post({ pod_ip: none, time_stamp: at(300), is_dead: true })
  assert.equal((await byIp(none)).json.pod_name, last.pod_name)
})

check('pods: by ip at a time leaves out pods that started later or at an unknown time', async () => {
  const body = await post({ started_at: at(100) })
  notFound(await byIp(body.pod_ip, at(99)))
  notFound(await byIp(body.pod_ip, at(99, '999999')))
  assert.equal((await byIp(body.pod_ip, at(100))).json.pod_name, body.pod_name)
  assert.equal((await byIp(body.pod_ip, at(5000))).json.pod_name, body.pod_name)
  const unknown = await post({ started_at: undefined })
  notFound(await byIp(unknown.pod_ip, at(5000)))
  assert.equal((await byIp(unknown.pod_ip)).json.pod_name, unknown.pod_name)
})

check('pods: by ip at a time leaves out pods that were dead by then', async () => {
  const body = await post({ started_at: at(100), time_stamp: at(200), is_dead: true })
  assert.equal((await byIp(body.pod_ip, at(150))).json.pod_name, body.pod_name)
  assert.equal((await byIp(body.pod_ip, at(200))).json.pod_name, body.pod_name)
  notFound(await byIp(body.pod_ip, at(200, '000001')))
})

check('pods: by ip at a time prefers live, then latest start, then newest record, then name', async () => {
  const ip = address()
  const dead = await post({ pod_ip: ip, started_at: at(300), time_stamp: at(900), is_dead: true })
  assert.equal((await byIp(ip, at(400))).json.pod_name, dead.pod_name)
  const live = await post({ pod_ip: ip, started_at: at(100), time_stamp: at(200) })
  assert.equal((await byIp(ip, at(400))).json.pod_name, live.pod_name)
  const later = await post({ pod_ip: ip, started_at: at(150), time_stamp: at(160) })
  assert.equal((await byIp(ip, at(400))).json.pod_name, later.pod_name)
  assert.equal((await byIp(ip, at(149))).json.pod_name, live.pod_name)
  const newer = await post({ pod_ip: ip, started_at: at(150), time_stamp: at(170) })
  assert.equal((await byIp(ip, at(400))).json.pod_name, newer.pod_name)
  const first = await post({ pod_name: `a-${name()}`, pod_ip: ip, started_at: at(150), time_stamp: at(170) })
  assert.equal((await byIp(ip, at(400))).json.pod_name, first.pod_name)
})

check('pods: the time of a look-up may be naive, or RFC 3339 with any offset', async () => {
  const body = await post({ started_at: at(100) })
  for (const yes of [
    at(100),
    at(100, '000'),
    `${at(100)}Z`,
    `${at(100, '25')}Z`,
    `${at(100)}+00:00`,
    `${at(100 + 7200)}+02:00`,
    `${at(100 - 19800)}-05:30`,
  ]) {
    assert.equal((await byIp(body.pod_ip, yes)).json?.pod_name, body.pod_name, yes)
  }
  for (const no of [`${at(99)}Z`, `${at(99 + 7200)}+02:00`, `${at(99 - 19800)}-05:30`])
    notFound(await byIp(body.pod_ip, no))
})

check('pods: an empty time of a look-up counts as absent', async () => {
  const body = await post({ started_at: undefined })
  assert.equal((await b.get(`/pod/ip/${body.pod_ip}?at=`)).json.pod_name, body.pod_name)
})

check('pods: an unreadable time of a look-up is 400', async () => {
  const body = await post()
  for (const bad of ['yesterday', '2026-13-01T00:00:00', '12345', at(0).slice(0, 10)]) {
    const r = await byIp(body.pod_ip, bad)
    assert.equal(r.status, 400, bad)
    assert.notEqual(r.text, '')
  }
})

check('pods: a missing required key is 400 and writes nothing', async () => {
  for (const key of ['pod_ip', 'time_stamp', 'node_name', 'is_dead']) {
    for (const value of [undefined, null]) {
      const body = pod({ [key]: value })
      const r = await b.post('/pod/spec', body)
      assert.equal(r.status, 400, `${key} ${value}`)
      notFound(await byName(body.pod_name))
    }
  }
  const nameless = pod({ pod_name: undefined })
  assert.equal((await b.post('/pod/spec', nameless)).status, 400)
  notFound(await byIp(nameless.pod_ip))
})

check('pods: a wrong type is 400 and writes nothing', async () => {
  const wrong = {
    pod_ip: 5,
    time_stamp: 1700000000,
    node_name: [],
    is_dead: 'false',
    pod_namespace: 5,
    pod_identity: {},
    workload_kind: 1,
    workload_name: true,
    capture_level: 3,
    host_network: 'true',
    started_at: 7,
    workload_selector_labels: 'app=x',
  }
  for (const [key, value] of Object.entries(wrong)) {
    const body = pod({ [key]: value })
    assert.equal((await b.post('/pod/spec', body)).status, 400, key)
    notFound(await byName(body.pod_name))
  }
  const odd = pod({ pod_name: 12 })
  assert.equal((await b.post('/pod/spec', odd)).status, 400)
  notFound(await byIp(odd.pod_ip))
})

check('pods: a refused post leaves the stored row as it was', async () => {
  const body = await post({ pod_identity: 'before' })
  const stored = (await byName(body.pod_name)).json
  assert.equal((await b.post('/pod/spec', { ...body, pod_identity: 'after', is_dead: 'no' })).status, 400)
  assert.deepEqual((await byName(body.pod_name)).json, stored)
})

check('pods: a body that is not a JSON object is 400', async () => {
  for (const text of ['', '{', '{"pod_name": "x",}', 'nonsense', '[]', 'null', '5', '"x"'])
    assert.equal((await raw('/pod/spec', text)).status, 400, text)
})

check('pods: a body of another content type is refused and writes nothing', async () => {
  const body = pod()
  const r = await raw('/pod/spec', JSON.stringify(body), { 'content-type': 'text/plain' })
  assert.ok(r.status >= 400 && r.status < 500, `${r.status}`)
  notFound(await byName(body.pod_name))
  assert.equal(
    (await raw('/pod/spec', JSON.stringify(body), { 'content-type': 'application/json; charset=utf-8' })).status,
    200,
  )
})

check('pods: times take up to nine fraction digits and come back with as many as needed', async () => {
  for (const [sent, want] of [
    ['', ''],
    ['5', '.500'],
    ['120', '.120'],
    ['000001', '.000001'],
    ['123456', '.123456'],
    ['123456000', '.123456'],
    ['000', ''],
  ]) {
    const body = await post({ time_stamp: at(30, sent) })
    assert.equal((await byName(body.pod_name)).json.time_stamp, at(30) + want, sent)
  }
})

check('pods: a zone or another form of time is 400 and writes nothing', async () => {
  for (const bad of [
    `${at(0)}Z`,
    `${at(0)}+00:00`,
    at(0).replace('T', ' '),
    at(0).slice(0, 10),
    '2026-02-30T00:00:00',
    '',
    'now',
  ]) {
    for (const key of ['time_stamp', 'started_at']) {
      const body = pod({ [key]: bad })
      assert.equal((await b.post('/pod/spec', body)).status, 400, `${key} ${bad}`)
      notFound(await byName(body.pod_name))
    }
  }
})

check('pods: U+0000 in a string is refused and writes nothing', async () => {
  for (const over of [
    { pod_name: `nul\u0000${name()}` },
    { node_name: 'a\u0000' },
    { pod_namespace: '\u0000' },
    { pod_obj: { metadata: { labels: { app: 'a\u0000b' } } } },
    { workload_selector_labels: { a: '\u0000' } },
  ]) {
    const body = pod(over)
    const r = await b.post('/pod/spec', body)
    assert.ok([400, 422].includes(r.status), `${JSON.stringify(over)}: ${r.status}`)
    notFound(await byIp(body.pod_ip))
  }
})

check('pods: a body of almost two MiB is taken', async () => {
  const body = await post({ pod_obj: { metadata: { uid: 'big', annotations: { text: 'x'.repeat(2 * MIB - 4096) } } } })
  assert.equal((await byName(body.pod_name)).json.pod_obj.metadata.annotations.text.length, 2 * MIB - 4096)
})

check('pods: a body over two MiB is 413 and writes nothing', async () => {
  for (const chunked of [false, true]) {
    const body = pod({ padding: 'x'.repeat(2 * MIB + 200_000) })
    assert.equal(await sendLarge('/pod/spec', JSON.stringify(body), { chunked }), 413)
    notFound(await byName(body.pod_name))
  }
})

check('pods: HEAD answers like GET without a body', async () => {
  const body = await post()
  const opts = { headers: { 'accept-encoding': 'identity' } }
  for (const path of [
    `/pod/name/${body.pod_name}`,
    `/pod/ip/${body.pod_ip}`,
    '/pod/namespaces',
    `/pod/list/${body.node_name}`,
    `/pod/name/${name('nobody')}`,
  ]) {
    const [get, head] = [await b.get(path, opts), await b.request('HEAD', path, opts)]
    assert.equal(head.status, get.status, path)
    assert.equal(head.text, '')
  }
})

check('pods: simultaneous posts of one name leave one row', async () => {
  const body = pod({ node_name: name('node') })
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, i) => b.post('/pod/spec', { ...body, time_stamp: at(600 + i) })),
  )
  assert.deepEqual([...new Set(answers.map((r) => r.status))], [200])
  assert.equal((await b.get(`/pod/list/${body.node_name}`)).json.length, 1)
})

check('pods: the sweep marks pods dead that were not posted again', async () => {
  const swept = await startBroker({ env: { PEER_STALE_ALIVE_SECS: '2', PEER_LATE_RESOLVE_INTERVAL_SECS: '5' } })
  let log = ''
  for (const stream of [swept.child.stdout, swept.child.stderr])
    stream.on('data', (piece) => {
      log += piece
    })
  try {
    const now = (s) => new Date(Date.now() + s * 1000).toISOString().slice(0, 19)
    const gone = pod({ node_name: 'node-silent-7', pod_namespace: 'swept', time_stamp: now(-60) })
    const here = pod({ node_name: 'node-talking-7', pod_namespace: 'kept', time_stamp: now(3000) })
    for (const p of [gone, here]) assert.equal((await swept.post('/pod/spec', p)).status, 200)
    await eventually(async () => (await swept.get(`/pod/name/${gone.pod_name}`)).json.is_dead, {
      timeoutMs: 40_000,
      what: 'the sweep',
    })
    assert.equal((await swept.get(`/pod/name/${gone.pod_name}`)).json.time_stamp, gone.time_stamp)
    assert.equal((await swept.get(`/pod/name/${here.pod_name}`)).json.is_dead, false)
    assert.deepEqual(
      (await swept.get('/pod/info?include_dead=false')).json.map((p) => p.pod_name),
      [here.pod_name],
    )
    assert.deepEqual((await swept.get('/pod/namespaces')).json, ['kept'])
    await eventually(() => log.includes('node-silent-7'), { what: 'the warning that names the node' })
    assert.equal((await swept.post('/pod/spec', { ...gone, time_stamp: now(3000) })).status, 200)
    assert.equal((await swept.get(`/pod/name/${gone.pod_name}`)).json.is_dead, false)
  } finally {
    await swept.stop()
  }
})
