// Services and syscalls.

import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'

let b
before(async () => {
  b = await startBroker()
})
after(async () => {
  await b?.stop()
})

const SERVICE_KEYS = ['svc_ip', 'svc_name', 'svc_namespace', 'service_spec', 'time_stamp']
const SYSCALL_KEYS = ['pod_name', 'pod_namespace', 'syscalls', 'arch', 'time_stamp']
const MIB = 1024 * 1024
const BASE = Math.floor(Date.now() / 1000) - 2 * 3600
const at = (seconds, fraction = '') =>
  new Date((BASE + seconds) * 1000).toISOString().slice(0, 19) + (fraction && `.${fraction}`)

let count = 0
const name = (stem) => `${stem}-c${String(++count).padStart(4, '0')}`
const address = () => {
  const n = ++count
  return `10.96.${n >> 8}.${n & 255}`
}
const address6 = () => `fd96::${(++count).toString(16)}`
const raw = (path, body, headers = { 'content-type': 'application/json' }) =>
  b.request('POST', path, { body, headers, raw: true })
function notFound(r) {
  assert.equal(r.status, 404, r.text)
  assert.equal(r.text, 'No data found')
}

/** Posts JSON in three pieces, resting between them, and stops as soon as an answer comes; answers its status. */
function sendLarge(path, text) {
  const body = Buffer.from(text)
  return new Promise((ok, no) => {
    let status
    const req = httpRequest(
      `${b.url}${path}`,
      {
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/json', 'content-length': body.length },
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

// ---- services

const service = (over = {}) => ({
  svc_ip: address(),
  svc_name: name('svc'),
  svc_namespace: 'shop',
  time_stamp: at(100),
  service_spec: {
    metadata: { name: 'web', uid: 'uid-web', labels: { app: 'web' } },
    spec: {
      selector: { app: 'web' },
      ports: [{ port: 80, targetPort: 'http', protocol: 'TCP' }],
      clusterIP: '10.96.0.1',
    },
  },
  ...over,
})
async function postService(over) {
  const body = service(over)
  const r = await b.post('/svc/spec', body)
  assert.equal(r.status, 200, r.text)
  return body
}
const svc = (ip) => b.get(`/svc/ip/${encodeURIComponent(ip)}`)

check('services: a record is answered, stored and read with its keys in order', async () => {
  const body = service()
  const posted = await b.post('/svc/spec', body)
  assert.equal(posted.status, 200)
  const info = (await b.get('/svc/info')).json.filter((s) => s.svc_ip === body.svc_ip)
  assert.equal(info.length, 1)
  for (const record of [posted.json, (await svc(body.svc_ip)).json, info[0]]) {
    assert.deepEqual(Object.keys(record), SERVICE_KEYS)
    assert.deepEqual(record, body)
  }
})

check('services: optional keys that were not sent read as null, unknown ones are ignored', async () => {
  const body = { svc_ip: address(), time_stamp: at(5) }
  const want = { ...body, svc_name: null, svc_namespace: null, service_spec: null }
  const posted = await b.post('/svc/spec', { ...body, colour: 'red' })
  assert.equal(posted.status, 200)
  assert.deepEqual(posted.json, want)
  assert.deepEqual((await svc(body.svc_ip)).json, want)
})

check('services: a second post of the same address replaces the record', async () => {
  const first = await postService()
  const second = await postService({
    svc_ip: first.svc_ip,
    svc_name: 'renamed',
    svc_namespace: 'moved',
    service_spec: { spec: { selector: { app: 'other' } } },
    time_stamp: at(200),
  })
  assert.deepEqual((await svc(first.svc_ip)).json, second)
  assert.equal((await b.get('/svc/info')).json.filter((s) => s.svc_ip === first.svc_ip).length, 1)
})

check('services: an absent or null key keeps the stored value', async () => {
  const first = await postService()
  assert.equal((await b.post('/svc/spec', { svc_ip: first.svc_ip, time_stamp: at(300), svc_name: null })).status, 200)
  assert.deepEqual((await svc(first.svc_ip)).json, { ...first, time_stamp: at(300) })
})

check('services: an empty address and the literal None write nothing', async () => {
  for (const ip of ['', 'None']) {
    const body = service({ svc_ip: ip })
    const r = await b.post('/svc/spec', body)
    assert.equal(r.status, 200)
    assert.deepEqual(r.json, body)
    assert.equal((await b.get('/svc/info')).json.filter((s) => s.svc_name === body.svc_name).length, 0)
  }
  notFound(await svc('None'))
})

check('services: addresses are stored and found in canonical form', async () => {
  const v6 = address6()
  const body = service({ svc_ip: v6.toUpperCase().replace('::', ':0:0:0:0:0:00:') })
  assert.equal((await b.post('/svc/spec', body)).json.svc_ip, v6)
  for (const spelling of [v6, v6.toUpperCase(), body.svc_ip])
    assert.equal((await svc(spelling)).json?.svc_ip, v6, spelling)
  const four = await postService()
  assert.equal((await svc(`::ffff:${four.svc_ip}`)).json?.svc_name, four.svc_name)
})

check('services: info is ordered by namespace, name and address', async () => {
  const rows = [
    ['svcorderb', 'b'],
    ['svcordera', 'b'],
    ['svcordera', 'a'],
    ['svcorderb', 'a'],
    ['svcordera', 'a'],
  ]
  const ips = ['10.97.0.14', '10.97.0.13', '10.97.0.12', '10.97.0.15', '10.97.0.11']
  for (const [i, [ns, n]] of rows.entries()) await postService({ svc_ip: ips[i], svc_name: n, svc_namespace: ns })
  const mine = (await b.get('/svc/info')).json.filter((s) => s.svc_namespace?.startsWith('svcorder'))
  assert.deepEqual(
    mine.map((s) => s.svc_ip),
    ['10.97.0.11', '10.97.0.12', '10.97.0.13', '10.97.0.15', '10.97.0.14'],
  )
})

check('services: an unknown address is 404', async () => {
  notFound(await svc(address()))
})

check('services: selector, ports and metadata survive', async () => {
  const spec = {
    metadata: { name: 'x', namespace: 'y', uid: 'u', annotations: { a: 'b' } },
    spec: {
      selector: { a: 'b', c: 'd' },
      ports: [
        { name: 'p', port: 1, nodePort: 30000, targetPort: 'x' },
        { port: 2, targetPort: 3 },
      ],
      type: 'NodePort',
    },
  }
  const body = await postService({ service_spec: { ...spec, status: { loadBalancer: {} } } })
  const read = (await svc(body.svc_ip)).json.service_spec
  assert.deepEqual(read.metadata, spec.metadata)
  assert.deepEqual(read.spec, spec.spec)
})

check('services: a missing key or a wrong type is 400 and writes nothing', async () => {
  for (const over of [
    { time_stamp: undefined },
    { time_stamp: null },
    { time_stamp: `${at(0)}Z` },
    { time_stamp: '2026-02-30T00:00:00' },
    { time_stamp: 5 },
    { svc_name: 5 },
    { svc_namespace: [] },
  ]) {
    const body = service(over)
    assert.equal((await b.post('/svc/spec', body)).status, 400, JSON.stringify(over))
    notFound(await svc(body.svc_ip))
  }
  for (const over of [{ svc_ip: undefined }, { svc_ip: null }, { svc_ip: 10 }]) {
    const body = service(over)
    assert.equal((await b.post('/svc/spec', body)).status, 400, JSON.stringify(over))
    assert.equal((await b.get('/svc/info')).json.filter((s) => s.svc_name === body.svc_name).length, 0)
  }
})

check('services: a body that is not a JSON object is 400', async () => {
  for (const text of ['', '{', '[]', 'null', '7', 'x']) assert.equal((await raw('/svc/spec', text)).status, 400, text)
})

check('services: U+0000 in a string is refused and writes nothing', async () => {
  for (const over of [
    { svc_name: '\u0000' },
    { svc_namespace: 'a\u0000' },
    { service_spec: { spec: { selector: { a: '\u0000' } } } },
  ]) {
    const body = service(over)
    const r = await b.post('/svc/spec', body)
    assert.ok([400, 422].includes(r.status), `${JSON.stringify(over)}: ${r.status}`)
    notFound(await svc(body.svc_ip))
  }
})

check('services: a body over two MiB is 413 and writes nothing', async () => {
  const body = service({ padding: 'x'.repeat(2 * MIB + 200_000) })
  assert.equal(await sendLarge('/svc/spec', JSON.stringify(body)), 413)
  notFound(await svc(body.svc_ip))
})

check('services: simultaneous posts of one address leave one record', async () => {
  const body = service()
  const answers = await Promise.all(Array.from({ length: 16 }, () => b.post('/svc/spec', body)))
  assert.deepEqual([...new Set(answers.map((r) => r.status))], [200])
  assert.equal((await b.get('/svc/info')).json.filter((s) => s.svc_ip === body.svc_ip).length, 1)
})

// ---- syscalls

const entry = (over = {}) => ({
  pod_name: name('sys'),
  pod_namespace: '',
  syscalls: ['read', 'write'],
  arch: 'x86_64',
  time_stamp: at(100),
  ...over,
})
async function post(entries) {
  const r = await b.post('/pod/syscalls', entries)
  assert.equal(r.status, 200, r.text)
  assert.equal(r.text, 'null')
  return entries
}
const sys = (n) => b.get(`/pod/syscalls/${encodeURIComponent(n)}`)
const names = async (n) => {
  const r = await sys(n)
  assert.equal(r.status, 200, r.text)
  assert.equal(r.json.length, 1)
  return r.json[0].syscalls
}

check('syscalls: a record is read back as an array of one, names joined with commas', async () => {
  const [e] = await post([entry({ pod_namespace: 'shop', arch: 'aarch64', time_stamp: at(100, '123456') })])
  const r = await sys(e.pod_name)
  assert.equal(r.status, 200)
  assert.deepEqual(r.json, [{ ...e, syscalls: 'read,write' }])
  assert.deepEqual(Object.keys(r.json[0]), SYSCALL_KEYS)
})

check('syscalls: the answer is null, for no entries too', async () => {
  await post([])
  await post([entry()])
})

check('syscalls: later names are added after the earlier ones', async () => {
  const [e] = await post([entry({ syscalls: ['write', 'read'] })])
  await post([{ ...e, syscalls: ['openat'] }])
  assert.equal(await names(e.pod_name), 'write,read,openat')
  await post([{ ...e, syscalls: ['read', 'close', 'write', '435'] }])
  assert.equal(await names(e.pod_name), 'write,read,openat,close,435')
  await post([{ ...e, syscalls: [] }])
  assert.equal(await names(e.pod_name), 'write,read,openat,close,435')
})

check('syscalls: names are kept once, in the order first seen', async () => {
  const [e] = await post([entry({ syscalls: ['mmap', 'read', 'mmap', 'brk', 'read'] })])
  assert.equal(await names(e.pod_name), 'mmap,read,brk')
})

check('syscalls: several entries of one pod in one body are united in order', async () => {
  const e = entry({ syscalls: ['read'] })
  await post([e, entry(), { ...e, syscalls: ['write', 'read'] }, { ...e, syscalls: ['close'] }])
  assert.equal(await names(e.pod_name), 'read,write,close')
})

check('syscalls: another namespace or architecture for the pod is no failure and no second record', async () => {
  const [e] = await post([entry({ syscalls: ['read'] })])
  await post([{ ...e, pod_namespace: 'shop', arch: 'aarch64', syscalls: ['write'] }])
  assert.equal(await names(e.pod_name), 'read,write')
})

check('syscalls: entries with a blank pod_name are skipped, the others are stored', async () => {
  const e = entry()
  await post([entry({ pod_name: '' }), e, entry({ pod_name: '   ' }), entry({ pod_name: '\t' })])
  assert.equal(await names(e.pod_name), 'read,write')
  notFound(await sys('   '))
  await post([entry({ pod_name: ' ' })])
})

check('syscalls: an unknown pod is 404', async () => {
  notFound(await sys(name('nobody')))
})

check('syscalls: a missing key anywhere is 400 and nothing of the body is written', async () => {
  for (const key of ['pod_name', 'pod_namespace', 'syscalls', 'arch', 'time_stamp']) {
    for (const value of [undefined, null]) {
      const [good, bad] = [entry(), entry({ [key]: value })]
      assert.equal((await b.post('/pod/syscalls', [good, bad])).status, 400, key)
      notFound(await sys(good.pod_name))
      if (key !== 'pod_name') notFound(await sys(bad.pod_name))
    }
  }
})

check('syscalls: a wrong type is 400 and nothing of the body is written', async () => {
  for (const over of [
    { pod_name: 5 },
    { pod_namespace: 5 },
    { syscalls: 'read' },
    { syscalls: ['read', 5] },
    { syscalls: [null] },
    { syscalls: {} },
    { arch: 86 },
    { time_stamp: 5 },
    { time_stamp: `${at(0)}Z` },
  ]) {
    const good = entry()
    assert.equal((await b.post('/pod/syscalls', [good, entry(over)])).status, 400, JSON.stringify(over))
    notFound(await sys(good.pod_name))
  }
  for (const bad of [null, 5, 'x', []]) {
    const good = entry()
    assert.equal((await b.post('/pod/syscalls', [good, bad])).status, 400, JSON.stringify(bad))
    notFound(await sys(good.pod_name))
  }
})

check('syscalls: a refused body leaves stored names as they were', async () => {
  const [e] = await post([entry()])
  assert.equal((await b.post('/pod/syscalls', [{ ...e, syscalls: ['close'] }, entry({ arch: 1 })])).status, 400)
  assert.equal(await names(e.pod_name), 'read,write')
})

check('syscalls: a body that is not a JSON array is 400', async () => {
  const e = entry()
  assert.equal((await b.post('/pod/syscalls', e)).status, 400)
  for (const text of ['', '[', '{}', 'null', '7', 'x', `[${JSON.stringify(e)},]`])
    assert.equal((await raw('/pod/syscalls', text)).status, 400, text)
  notFound(await sys(e.pod_name))
})

check('syscalls: unknown keys are ignored', async () => {
  const [e] = await post([entry({ colour: 'red', nested: [{}] })])
  assert.deepEqual(Object.keys((await sys(e.pod_name)).json[0]), SYSCALL_KEYS)
})

check('syscalls: U+0000 in a string is refused and nothing of the body is written', async () => {
  for (const over of [{ syscalls: ['a\u0000'] }, { pod_name: 'a\u0000' }, { arch: '\u0000' }]) {
    const good = entry()
    const r = await b.post('/pod/syscalls', [good, entry(over)])
    assert.ok([400, 422].includes(r.status), `${JSON.stringify(over)}: ${r.status}`)
    notFound(await sys(good.pod_name))
  }
})

check('syscalls: a body over two MiB is 413 and writes nothing', async () => {
  const e = entry({ padding: 'x'.repeat(2 * MIB + 200_000) })
  assert.equal(await sendLarge('/pod/syscalls', JSON.stringify([e])), 413)
  notFound(await sys(e.pod_name))
})

check('syscalls: simultaneous posts of one pod lose no name', async () => {
  const e = entry({ syscalls: [] })
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => b.post('/pod/syscalls', [{ ...e, syscalls: [`call${i}`, 'read'] }])),
  )
  assert.deepEqual([...new Set(answers.map((r) => r.status))], [200])
  assert.deepEqual(
    (await names(e.pod_name)).split(',').sort(),
    ['read', ...Array.from({ length: 20 }, (_, i) => `call${i}`)].sort(),
  )
})

check('services-syscalls: HEAD answers like GET without a body', async () => {
  const [s, [e]] = [await postService(), await post([entry()])]
  const opts = { headers: { 'accept-encoding': 'identity' } }
  for (const path of [
    `/svc/ip/${s.svc_ip}`,
    '/svc/info',
    `/pod/syscalls/${e.pod_name}`,
    `/pod/syscalls/${name('nobody')}`,
    `/svc/ip/${address()}`,
  ]) {
    const [get, head] = [await b.get(path, opts), await b.request('HEAD', path, opts)]
    assert.equal(head.status, get.status, path)
    assert.equal(head.text, '')
  }
})
