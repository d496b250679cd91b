// Traffic: single and batch ingest, deduplication, lists.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { request as httpRequest } from 'node:http'
import { after, before } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'

let b
before(async () => {
  b = await startBroker({ env: { PEER_STALE_ALIVE_SECS: '0', PEER_LATE_RESOLVE_WINDOW_SECS: '0' } })
})
after(async () => {
  await b?.stop()
})

const KEYS = [
  'uuid',
  'pod_name',
  'pod_namespace',
  'pod_ip',
  'pod_port',
  'ip_protocol',
  'traffic_type',
  'traffic_in_out_ip',
  'traffic_in_out_port',
  'decision',
  'time_stamp',
  'peer_kind',
  'peer_namespace',
  'peer_name',
  'peer_uid',
  'peer_workload_kind',
  'peer_workload_name',
  'peer_resolved_at',
  'drop_cause',
  'syn_retries',
]
const STRINGS = KEYS.slice(1, 10)
const MIB = 1024 * 1024
const BASE = Math.floor(Date.now() / 1000) - 2 * 3600
const at = (seconds, fraction = '') =>
  new Date((BASE + seconds) * 1000).toISOString().slice(0, 19) + (fraction && `.${fraction}`)

let count = 0
const name = (stem = 'pod') => `${stem}-t${String(++count).padStart(4, '0')}`
const address = () => {
  const n = ++count
  return `10.${70 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`
}
const flow = (over = {}) => ({
  uuid: randomUUID(),
  pod_name: name(),
  pod_namespace: 'shop',
  pod_ip: address(),
  pod_port: '0',
  ip_protocol: 'TCP',
  traffic_type: 'EGRESS',
  traffic_in_out_ip: address(),
  traffic_in_out_port: '443',
  decision: 'ALLOW',
  time_stamp: at(100),
  ...over,
})
/** The same flow seen again: another uuid and, unless said otherwise, the same everything. */
const again = (f, over = {}) => ({ ...f, uuid: randomUUID(), ...over })
const one = async (f) => {
  const r = await b.post('/pod/traffic', f)
  assert.equal(r.status, 200, r.text)
  return r.json
}
const batch = async (flows) => {
  const r = await b.post('/pod/traffic/batch', flows)
  assert.equal(r.status, 200, r.text)
  return r.json
}
const byName = (n) => b.get(`/pod/traffic/${encodeURIComponent(n)}`)
const rows = async (n) => {
  const r = await byName(n)
  assert.equal(r.status, 200, r.text)
  return r.json
}
async function nothing(...names) {
  for (const n of names) {
    const r = await byName(n)
    assert.equal(r.status, 404, `${n}: ${r.text.slice(0, 200)}`)
    assert.equal(r.text, 'No data found')
  }
}
const raw = (path, body, headers = { 'content-type': 'application/json' }) =>
  b.request('POST', path, { body, headers, raw: true })
const newestFirst = (x, y) =>
  x.time_stamp < y.time_stamp ? 1 : x.time_stamp > y.time_stamp ? -1 : x.uuid < y.uuid ? 1 : -1

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

check('traffic: a single post answers the inserted row with its keys in order', async () => {
  const f = flow({ time_stamp: at(100, '123456'), syn_retries: 5, decision: 'DROP' })
  const want = { ...Object.fromEntries(KEYS.map((k) => [k, null])), ...f }
  const row = await one(f)
  assert.deepEqual(Object.keys(row), KEYS)
  assert.deepEqual(row, want)
  const list = await rows(f.pod_name)
  assert.deepEqual(Object.keys(list[0]), KEYS)
  assert.deepEqual(list, [want])
})

check('traffic: keys that were not sent read as null', async () => {
  const f = { uuid: randomUUID(), pod_name: name(), time_stamp: at(100) }
  assert.equal(await batch([f]), 1)
  assert.deepEqual(await rows(f.pod_name), [{ ...Object.fromEntries(KEYS.map((k) => [k, null])), ...f }])
})

check('traffic: unknown keys are ignored', async () => {
  const f = flow()
  assert.equal(await batch([{ ...f, colour: 'red', nested: { deep: [1] } }]), 1)
  assert.deepEqual(Object.keys((await rows(f.pod_name))[0]), KEYS)
})

check('traffic: a uuid of another form is taken as it is', async () => {
  const f = flow({ uuid: `flow number ${++count}` })
  assert.equal(await batch([f]), 1)
  assert.equal((await rows(f.pod_name))[0].uuid, f.uuid)
})

check('traffic: a single post of a known flow answers null and stores nothing', async () => {
  const f = flow()
  assert.notEqual(await one(f), null)
  const r = await b.post('/pod/traffic', again(f))
  assert.equal(r.status, 200)
  assert.equal(r.text, 'null')
  assert.equal((await rows(f.pod_name)).length, 1)
})

check('traffic: a batch answers the number of rows inserted', async () => {
  const n = name()
  const flows = Array.from({ length: 10 }, () => flow({ pod_name: n }))
  assert.equal(await batch(flows), 10)
  assert.equal(await batch(flows.map((f) => again(f))), 0)
  assert.equal(
    await batch([...flows.slice(0, 3).map((f) => again(f)), flow({ pod_name: n }), flow({ pod_name: n })]),
    2,
  )
  assert.equal((await rows(n)).length, 12)
})

check('traffic: an empty batch is zero', async () => {
  assert.equal(await batch([]), 0)
})

check('traffic: repeats inside one batch are dropped, the first is kept', async () => {
  const f = flow()
  assert.equal(
    await batch([f, again(f, { time_stamp: at(50) }), again(f, { pod_name: 'other', pod_namespace: 'other' })]),
    1,
  )
  assert.deepEqual(
    (await rows(f.pod_name)).map((r) => [r.uuid, r.time_stamp]),
    [[f.uuid, f.time_stamp]],
  )
})

check('traffic: each of the six key members makes another flow', async () => {
  const f = flow()
  await one(f)
  for (const [key, value] of Object.entries({
    pod_ip: address(),
    pod_port: '8080',
    traffic_type: 'INGRESS',
    traffic_in_out_ip: address(),
    traffic_in_out_port: '80',
    decision: 'DROP',
  })) {
    assert.equal(await batch([again(f, { [key]: value })]), 1, key)
    assert.equal(await batch([again(f, { [key]: value })]), 0, `${key} again`)
  }
  assert.equal((await rows(f.pod_name)).length, 7)
})

check('traffic: nothing outside the key makes another flow', async () => {
  const f = flow()
  await one(f)
  for (const over of [
    { pod_name: name() },
    { pod_namespace: 'elsewhere' },
    { time_stamp: at(4000) },
    { syn_retries: 9 },
    { ip_protocol: 'SCTP' },
    { peer_kind: 'pod', peer_name: 'x' },
  ]) {
    assert.equal(await batch([again(f, over)]), 0, JSON.stringify(over))
    assert.equal(await one(again(f, over)), null, JSON.stringify(over))
  }
})

check('traffic: the first observation stays, a repeat does not refresh it', async () => {
  const f = flow({ time_stamp: at(100) })
  await one(f)
  await one(again(f, { time_stamp: at(900) }))
  await batch([again(f, { time_stamp: at(10) })])
  assert.deepEqual(
    (await rows(f.pod_name)).map((r) => [r.uuid, r.time_stamp]),
    [[f.uuid, at(100)]],
  )
})

check('traffic: UDP that differs in one port only is the same flow', async () => {
  const f = flow({ ip_protocol: 'UDP', pod_port: '40000', traffic_in_out_port: '53' })
  assert.equal(await batch([f]), 1)
  assert.equal(await batch([again(f, { pod_port: '40001' })]), 0)
  assert.equal(await batch([again(f, { traffic_in_out_port: '54' })]), 0)
  assert.equal(await one(again(f, { pod_port: '40002' })), null)
  assert.equal(await batch([again(f, { pod_port: '40001', traffic_in_out_port: '54' })]), 1)
  assert.equal(await batch([again(f, { decision: 'DROP' })]), 1)
})

check('traffic: other protocols need both ports to match', async () => {
  for (const protocol of ['TCP', 'SCTP', 'ICMP', 'udp', null]) {
    const f = flow({ ip_protocol: protocol, pod_port: '40000', traffic_in_out_port: '53' })
    assert.equal(await batch([f]), 1, protocol)
    assert.equal(await batch([again(f, { pod_port: '40001' })]), 1, protocol)
    assert.equal(await batch([again(f, { traffic_in_out_port: '54' })]), 1, protocol)
    assert.equal(await batch([again(f)]), 0, protocol)
  }
})

check('traffic: the branch follows the event, not the stored row', async () => {
  const tcp = flow({ pod_port: '40000', traffic_in_out_port: '53' })
  assert.equal(await batch([tcp]), 1)
  assert.equal(await batch([again(tcp, { ip_protocol: 'UDP' })]), 0)
  assert.equal(await batch([again(tcp, { ip_protocol: 'UDP', pod_port: '40001' })]), 0)
  const udp = flow({ ip_protocol: 'UDP', pod_port: '40000', traffic_in_out_port: '53' })
  assert.equal(await batch([udp]), 1)
  assert.equal(await batch([again(udp, { ip_protocol: 'TCP' })]), 0)
  assert.equal(await batch([again(udp, { ip_protocol: 'TCP', pod_port: '40001' })]), 1)
})

check('traffic: UDP pairs inside one batch follow the same rule', async () => {
  const f = flow({ ip_protocol: 'UDP', pod_port: '40000', traffic_in_out_port: '53' })
  assert.equal(
    await batch([
      f,
      again(f, { pod_port: '40001' }),
      again(f, { traffic_in_out_port: '54' }),
      again(f, { pod_port: '40001', traffic_in_out_port: '54' }),
    ]),
    2,
  )
  assert.deepEqual((await rows(f.pod_name)).map((r) => `${r.pod_port} ${r.traffic_in_out_port}`).sort(), [
    '40000 53',
    '40001 54',
  ])
})

check('traffic: a null key member never matches a stored row, but does inside a batch', async () => {
  for (const key of ['pod_ip', 'pod_port', 'traffic_type', 'traffic_in_out_ip', 'traffic_in_out_port', 'decision']) {
    const f = flow({ [key]: null })
    assert.equal(await batch([f, again(f)]), 1, key)
    assert.equal(await batch([again(f)]), 1, key)
    assert.notEqual(await one(again(f)), null, key)
    assert.equal((await rows(f.pod_name)).length, 3, key)
  }
})

check('traffic: addresses are compared and stored in canonical form', async () => {
  const f = flow({ pod_ip: 'FD70:0:0::0001', traffic_in_out_ip: '2001:DB8:0:0:0:0:0:70' })
  assert.equal(await batch([f]), 1)
  assert.equal(await batch([again(f, { pod_ip: 'fd70::1', traffic_in_out_ip: '2001:db8::70' })]), 0)
  const [row] = await rows(f.pod_name)
  assert.equal(row.pod_ip, 'fd70::1')
  assert.equal(row.traffic_in_out_ip, '2001:db8::70')
  const mapped = flow()
  await one(mapped)
  assert.equal(
    await batch([
      again(mapped, { pod_ip: `::ffff:${mapped.pod_ip}`, traffic_in_out_ip: `::FFFF:${mapped.traffic_in_out_ip}` }),
    ]),
    0,
  )
  const both = flow()
  assert.equal(await batch([both, again(both, { traffic_in_out_ip: `::ffff:${both.traffic_in_out_ip}` })]), 1)
})

check('traffic: a repeated uuid is a duplicate, not an error', async () => {
  const f = flow()
  await one(f)
  const other = flow({ uuid: f.uuid })
  assert.equal(await one(other), null)
  assert.equal(await batch([other, flow()]), 1)
  await nothing(other.pod_name)
  const twin = flow()
  assert.equal(await batch([twin, flow({ uuid: twin.uuid, pod_name: twin.pod_name })]), 1)
  assert.equal((await rows(twin.pod_name)).length, 1)
})

check('traffic: the same batch posted eight times at once inserts each flow once', async () => {
  for (let round = 0; round < 3; round += 1) {
    const n = name('race')
    const flows = Array.from({ length: 100 }, (_, i) => flow({ pod_name: n, ip_protocol: i % 2 ? 'UDP' : 'TCP' }))
    const counts = await Promise.all(Array.from({ length: 8 }, () => batch(flows.map((f) => again(f)))))
    assert.equal(
      counts.reduce((x, y) => x + y, 0),
      100,
    )
    const stored = await rows(n)
    assert.equal(stored.length, 100)
    assert.equal(new Set(stored.map((r) => r.traffic_in_out_ip)).size, 100)
  }
})

check('traffic: one flow posted many times at once is inserted once', async () => {
  const f = flow()
  const answers = await Promise.all(Array.from({ length: 16 }, () => one(again(f))))
  const inserted = answers.filter((a) => a !== null)
  assert.equal(inserted.length, 1)
  assert.deepEqual(await rows(f.pod_name), inserted)
})

check('traffic: one uuid posted many times at once is stored once', async () => {
  const f = flow()
  const answers = await Promise.all(Array.from({ length: 10 }, () => one(flow({ uuid: f.uuid, pod_name: f.pod_name }))))
  assert.equal(answers.filter((a) => a !== null).length, 1)
  assert.equal((await rows(f.pod_name)).length, 1)
})

check('traffic: by name holds every namespace of that name, and no other name', async () => {
  const n = name()
  await batch([
    flow({ pod_name: n, pod_namespace: 'a' }),
    flow({ pod_name: n, pod_namespace: 'b' }),
    flow({ pod_name: n, pod_namespace: null }),
    flow({ pod_name: `${n}-1` }),
    flow({ pod_name: n.toUpperCase() }),
  ])
  assert.deepEqual((await rows(n)).map((r) => r.pod_namespace).sort(), ['a', 'b', null])
})

check('traffic: by name with no rows is 404', async () => {
  await nothing(name('nobody'))
})

check('traffic: by name is newest first, equal times by uuid downwards', async () => {
  const n = name()
  const flows = [at(100), at(100, '000001'), at(99, '999999'), at(100), at(100), at(101)].map((t) =>
    flow({ pod_name: n, time_stamp: t }),
  )
  await batch(flows)
  assert.deepEqual(
    (await rows(n)).map((r) => r.uuid),
    [...flows].sort(newestFirst).map((f) => f.uuid),
  )
})

// 25 000 rows of one pod, newer than everything else in this file, five to each instant.
let bulk
const loaded = () =>
  (bulk ??= (async () => {
    const n = 'bulk-pod'
    const flows = Array.from({ length: 25_000 }, (_, i) =>
      flow({
        pod_name: n,
        pod_ip: '172.29.0.1',
        traffic_in_out_ip: `172.30.${i >> 8}.${i & 255}`,
        traffic_in_out_port: '443',
        time_stamp: at(7000, String(100_000 + Math.floor(((i * 7919) % 25_000) / 5)).padStart(6, '0')),
      }),
    )
    for (let i = 0; i < flows.length; i += 2500) assert.equal(await batch(flows.slice(i, i + 2500)), 2500)
    // The wire drops trailing zeros in threes: compare instants, not text.
    const micros = (f) => f.time_stamp.padEnd(26, '0')
    return {
      n,
      uuids: [...flows]
        .sort((x, y) => newestFirst({ ...x, time_stamp: micros(x) }, { ...y, time_stamp: micros(y) }))
        .map((f) => f.uuid),
    }
  })())

check('traffic: by name has no limit', async () => {
  const { n, uuids } = await loaded()
  const all = await rows(n)
  assert.equal(all.length, 25_000)
  assert.deepEqual(
    all.map((r) => r.uuid),
    uuids,
  )
  assert.deepEqual(Object.keys(all[24_999]), KEYS)
})

check('traffic: the list holds the newest 5000 unless told otherwise', async () => {
  const { uuids } = await loaded()
  const r = await b.get('/pod/traffic')
  assert.equal(r.status, 200)
  assert.deepEqual(
    r.json.map((row) => row.uuid),
    uuids.slice(0, 5000),
  )
  assert.deepEqual(Object.keys(r.json[0]), KEYS)
})

check('traffic: limit is clamped to 1 and 20000', async () => {
  const { uuids } = await loaded()
  for (const [limit, want] of [
    ['1', 1],
    ['7', 7],
    ['0', 1],
    ['-5', 1],
    ['20000', 20_000],
    ['20001', 20_000],
    ['1000000', 20_000],
  ]) {
    const r = await b.get(`/pod/traffic?limit=${limit}`)
    assert.equal(r.status, 200, limit)
    assert.deepEqual(
      r.json.map((row) => row.uuid),
      uuids.slice(0, want),
      limit,
    )
  }
  assert.equal((await b.get('/pod/traffic?limit=3&colour=red')).json.length, 3)
})

check('traffic: a limit that is no number is 400', async () => {
  for (const bad of ['abc', '5x', 'ten']) assert.equal((await b.get(`/pod/traffic?limit=${bad}`)).status, 400, bad)
})

check('traffic: HEAD answers like GET without a body', async () => {
  const f = flow()
  await one(f)
  const opts = { headers: { 'accept-encoding': 'identity' } }
  for (const path of [`/pod/traffic/${f.pod_name}`, '/pod/traffic?limit=1', `/pod/traffic/${name('nobody')}`]) {
    const [get, head] = [await b.get(path, opts), await b.request('HEAD', path, opts)]
    assert.equal(head.status, get.status, path)
    assert.equal(head.text, '')
  }
})

check('traffic: times keep microseconds', async () => {
  for (const [sent, want] of [
    ['', ''],
    ['5', '.500'],
    ['123456', '.123456'],
    ['000100', '.000100'],
    ['120000000', '.120'],
    ['123456000', '.123456'],
  ]) {
    const f = flow({ time_stamp: at(200, sent) })
    assert.equal(await batch([f]), 1)
    assert.equal((await rows(f.pod_name))[0].time_stamp, at(200) + want, sent)
  }
})

check('traffic: a zone or another form of time is 400 and writes nothing', async () => {
  for (const bad of [
    `${at(0)}Z`,
    `${at(0)}+02:00`,
    at(0).replace('T', ' '),
    '2026-02-30T00:00:00',
    '',
    'now',
    1700000000,
  ]) {
    const [f, good] = [flow({ time_stamp: bad }), flow()]
    assert.equal((await b.post('/pod/traffic', f)).status, 400, `${bad}`)
    assert.equal((await b.post('/pod/traffic/batch', [good, f])).status, 400, `${bad}`)
    await nothing(f.pod_name, good.pod_name)
  }
})

check('traffic: a missing uuid or time_stamp is 400 and writes nothing', async () => {
  for (const key of ['uuid', 'time_stamp']) {
    for (const value of [undefined, null]) {
      const [f, good] = [flow({ [key]: value }), flow()]
      assert.equal((await b.post('/pod/traffic', f)).status, 400, key)
      assert.equal((await b.post('/pod/traffic/batch', [good, f])).status, 400, key)
      await nothing(f.pod_name, good.pod_name)
    }
  }
})

check('traffic: a wrong type is 400 and writes nothing', async () => {
  for (const [key, value] of [
    ...STRINGS.map((k) => [k, 80]),
    ['uuid', 5],
    ['uuid', {}],
    ['syn_retries', '4'],
    ['syn_retries', 1.5],
    ['decision', true],
    ['pod_port', ['80']],
  ]) {
    const pods = [name(), name()]
    const f = flow({ pod_name: pods[0], [key]: value })
    assert.equal((await b.post('/pod/traffic', f)).status, 400, key)
    assert.equal((await b.post('/pod/traffic/batch', [flow({ pod_name: pods[1] }), f])).status, 400, key)
    await nothing(...pods)
  }
})

check('traffic: a bad element names its index and field, and nothing of the batch is written', async () => {
  const n = name()
  const flows = Array.from({ length: 60 }, () => flow({ pod_name: n }))
  flows[37] = { ...flows[37], decision: 9 }
  const r = await b.post('/pod/traffic/batch', flows)
  assert.equal(r.status, 400)
  assert.match(r.text, /\b37\b/)
  assert.match(r.text, /decision/)
  await nothing(n)
  flows[37] = { ...flows[37], decision: 'ALLOW' }
  assert.equal(await batch(flows), 60)
})

check('traffic: an element that is no object is 400 and writes nothing', async () => {
  for (const bad of [null, 5, 'x', []]) {
    const f = flow()
    assert.equal((await b.post('/pod/traffic/batch', [f, bad])).status, 400, JSON.stringify(bad))
    await nothing(f.pod_name)
  }
})

check('traffic: a body of the wrong shape is 400', async () => {
  for (const text of ['', '{', 'nonsense', '5', 'null', '"x"', '{}']) {
    assert.equal((await raw('/pod/traffic', text)).status, 400, text)
    assert.equal((await raw('/pod/traffic/batch', text)).status, 400, text)
  }
  const f = flow()
  assert.equal((await b.post('/pod/traffic', [f])).status, 400)
  assert.equal((await b.post('/pod/traffic/batch', f)).status, 400)
  assert.equal((await raw('/pod/traffic/batch', `[${JSON.stringify(f)},`)).status, 400)
  await nothing(f.pod_name)
})

check('traffic: a body of another content type is refused and writes nothing', async () => {
  const f = flow()
  for (const [path, body] of [
    ['/pod/traffic', f],
    ['/pod/traffic/batch', [f]],
  ]) {
    const r = await raw(path, JSON.stringify(body), { 'content-type': 'text/plain' })
    assert.ok(r.status >= 400 && r.status < 500, `${r.status}`)
  }
  await nothing(f.pod_name)
})

check('traffic: U+0000 in a string is refused and writes nothing', async () => {
  for (const key of ['uuid', 'pod_namespace', 'decision', 'traffic_in_out_ip']) {
    const [f, good] = [flow(), flow()]
    f[key] = `a\u0000${f[key]}`
    for (const r of [await b.post('/pod/traffic', f), await b.post('/pod/traffic/batch', [good, f])])
      assert.ok([400, 422].includes(r.status), `${key}: ${r.status}`)
    await nothing(f.pod_name, good.pod_name)
  }
})

check('traffic: a batch of thousands of rows under two MiB is taken', async () => {
  const n = name()
  const flows = Array.from({ length: 5000 }, () => flow({ pod_name: n }))
  assert.ok(JSON.stringify(flows).length < 2 * MIB)
  assert.equal(await batch(flows), 5000)
  assert.equal((await rows(n)).length, 5000)
})

check('traffic: a body over two MiB is 413 and writes nothing', async () => {
  for (const chunked of [false, true]) {
    const f = flow()
    const padded = { ...f, padding: 'x'.repeat(2 * MIB + 200_000) }
    assert.equal(await sendLarge('/pod/traffic', JSON.stringify(padded), { chunked }), 413)
    assert.equal(await sendLarge('/pod/traffic/batch', JSON.stringify([flow(), padded]), { chunked }), 413)
    await nothing(f.pod_name)
  }
})
