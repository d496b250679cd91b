// Runtime inventory: what a report stores, merges and drops, the reads by workload and by image, heartbeats, coverage and its reasons, retention.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  byBytes,
  digest,
  digest512,
  executable,
  heartbeat,
  inOrder,
  inSecs,
  micros,
  naive,
  naiveIn,
  naiveTime,
  ok,
  pod,
  postgres,
  profiling,
  refused,
  computeJob as runJob,
  running,
  sameTime,
  unique,
} from '../lib/profiling.mjs'
import { rawPost } from '../lib/supply-chain.mjs'

let b
let s
let pg = null
const cleanups = []
before(async () => {
  b = await startBroker()
  s = profiling(b)
})
after(async () => {
  for (const stop of cleanups.reverse()) await stop().catch(() => {})
  await b?.stop()
  await pg?.stop()
})
const another = async (env) => {
  const o = await startBroker({ env })
  cleanups.push(() => o.stop())
  return { o, t: profiling(o) }
}

const HOUR = 3600
const ORIGINS = ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd'] // weakest to strongest
const NOBODY = {
  workloads: 0,
  instances: 0,
  lastHeartbeat: null,
  librariesTracked: false,
  instancesWithDrops: 0,
  windowHours: 24,
}

/** A workload nobody else uses, and makers of what its first pod reports. A heartbeat of it is covered unless a field says otherwise. */
function target({
  ns = unique('run'),
  kind = 'Deployment',
  name = 'web',
  container = 'app',
  image = digest(ns),
  podName = `${ns}-0`,
} = {}) {
  const who = {
    pod_namespace: ns,
    pod_name: podName,
    workload_kind: kind,
    workload_name: name,
    container_name: container,
    image_digest: image,
  }
  return {
    ns,
    kind,
    name,
    container,
    image,
    pod: podName,
    exe: (over) => executable({ ...who, ...over }),
    beat: (over) => heartbeat({ ...who, tracking_since: naiveIn(-48 * HOUR), ...over }),
  }
}
const post = async (...entries) => ok(await s.executables(entries)).json
const beat = async (...entries) => ok(await s.heartbeats(entries)).json
const read = async (w, params, p = s) => ok(await p.runtime(w, params)).json
const entries = async (w, params) => (await read(w, params)).containers.flatMap((c) => c.entries)
const only = (list, what) => {
  assert.equal(list.length, 1, `one ${what}: ${JSON.stringify(list)}`)
  return list[0]
}
const entry = async (w, params) => only(await entries(w, params), 'entry')
const coverage = async (w, params, p = s) => only((await read(w, params, p)).coverage, 'coverage object')
const reason = async (w, params, p = s) => {
  const c = await coverage(w, params, p)
  assert.equal(c.covered, c.reason === null, 'covered exactly when there is no reason')
  return c.reason
}
const image = async (d, params) => ok(await s.image(d, params)).json
const send = (path, body) =>
  b.request('POST', path, { raw: true, body, headers: { 'content-type': 'application/json' } })
/** JSON of a list that is exactly `bytes` long. */
const padded = (list, bytes) => {
  const text = JSON.stringify(list)
  return `${text.slice(0, -1) + ' '.repeat(bytes - Buffer.byteLength(text))}]`
}

// ---- the read by workload

check('runtime: the workload route has the keys of the sheet in their order', async () => {
  const w = target()
  const [first, last] = [naiveIn(-900), naiveIn(-60)]
  await post(
    w.exe({
      path: '/usr/bin/curl',
      kind: 'exec',
      source: 'ebpf',
      origin: 'writableLayer',
      first_seen: first,
      last_seen: last,
    }),
  )
  await beat(w.beat())
  const got = await read(w)
  inOrder(got, ['namespace', 'kind', 'name', 'containers', 'truncated', 'coverage'])
  assert.deepEqual([got.namespace, got.kind, got.name, got.truncated], [w.ns, 'Deployment', 'web', false])
  const container = only(got.containers, 'container')
  inOrder(container, ['containerName', 'imageDigest', 'entries'])
  assert.deepEqual([container.containerName, container.imageDigest], ['app', w.image])
  const e = only(container.entries, 'entry')
  inOrder(e, ['path', 'kind', 'source', 'origin', 'pathComplete', 'firstSeen', 'lastSeen'])
  const { firstSeen, lastSeen, ...rest } = e
  assert.deepEqual(rest, {
    path: '/usr/bin/curl',
    kind: 'exec',
    source: 'ebpf',
    origin: 'writableLayer',
    pathComplete: true,
  })
  for (const t of [firstSeen, lastSeen]) assert.match(t, naiveTime)
  sameTime(firstSeen, first)
  sameTime(lastSeen, last)
  inOrder(only(got.coverage, 'coverage object'), [
    'containerName',
    'imageDigest',
    'instances',
    'lastHeartbeat',
    'mode',
    'librariesTracked',
    'covered',
    'observedSince',
    'reason',
    'reasonDetail',
    'windowHours',
  ])
})

check('runtime: a workload that nobody watches is 200 with empty lists', async () => {
  const ns = unique('nobody')
  assert.deepEqual(await read({ ns, kind: 'StatefulSet', name: 'db' }), {
    namespace: ns,
    kind: 'StatefulSet',
    name: 'db',
    containers: [],
    truncated: false,
    coverage: [],
  })
})

check('runtime: items come by container and digest, entries by kind and path', async () => {
  const w = target()
  const [x, y] = [digest('x'), digest('y')].sort(byBytes)
  await post(
    w.exe({ container_name: 'web', image_digest: y, path: '/bin/a' }),
    w.exe({ container_name: 'web', image_digest: x, path: '/bin/b' }),
    w.exe({ container_name: 'init', image_digest: y, kind: 'lib', path: '/lib/a.so' }),
    w.exe({ container_name: 'init', image_digest: y, path: '/bin/z' }),
    w.exe({ container_name: 'init', image_digest: y, path: '/bin/B' }),
    w.exe({ container_name: 'init', image_digest: y, path: '/bin/a' }),
  )
  const { containers } = await read(w)
  assert.deepEqual(
    containers.map((c) => [c.containerName, c.imageDigest, c.entries.map((e) => `${e.kind}:${e.path}`)]),
    [
      ['init', y, ['exec:/bin/B', 'exec:/bin/a', 'exec:/bin/z', 'lib:/lib/a.so']],
      ['web', x, ['exec:/bin/b']],
      ['web', y, ['exec:/bin/a']],
    ],
  )
})

check('runtime: an image that is not resolved is an empty digest', async () => {
  const w = target({ image: '' })
  assert.deepEqual(await post(w.exe()), { accepted: 1, dropped: 0, written: 1 })
  assert.equal(only((await read(w)).containers, 'container').imageDigest, '')
})

check('runtime: the same path of another workload, container, digest or kind is another row', async () => {
  const [w, other] = [target(), target()]
  const path = '/usr/bin/env'
  assert.deepEqual(
    await post(
      w.exe({ path }),
      w.exe({ path, kind: 'lib' }),
      w.exe({ path, container_name: 'side' }),
      w.exe({ path, image_digest: digest512(w.ns) }),
      other.exe({ path }),
    ),
    { accepted: 5, dropped: 0, written: 5 },
  )
  assert.equal((await entries(w)).length, 4)
  assert.equal((await entries(other)).length, 1)
})

check('runtime: filters by kind, container and origin combine', async () => {
  const w = target()
  await post(
    ...ORIGINS.flatMap((origin) =>
      ['exec', 'lib'].flatMap((kind) =>
        ['app', 'side'].map((container_name) => w.exe({ origin, kind, container_name, path: `/${origin}` })),
      ),
    ),
  )
  const found = async (params) =>
    (await read(w, params)).containers
      .flatMap((c) => c.entries.map((e) => [c.containerName, e.kind, e.origin].join(' ')))
      .sort()
  assert.equal((await found({})).length, 24)
  assert.equal((await found({ kind: 'lib' })).length, 12)
  assert.deepEqual(await found({ kind: 'exec', container: 'app' }), ORIGINS.map((o) => `app exec ${o}`).sort())
  for (const origin of ORIGINS)
    assert.deepEqual(await found({ origin, kind: 'lib', container: 'side' }), [`side lib ${origin}`])
  assert.deepEqual(await found({ origin: 'unshipped', kind: 'lib', container: 'app' }), [
    'app lib deleted',
    'app lib memfd',
    'app lib writableLayer',
  ])
  assert.deepEqual(await found({ container: 'ap' }), [])
  assert.equal((await found({ kind: '', origin: '' })).length, 24, 'blank ones do not filter')
})

for (const [what, params] of [
  ['kind', { kind: 'script' }],
  ['origin', { origin: 'shipped' }],
  ['limit', { limit: 'many' }],
  ['window', { window_hours: 'day' }],
  ['container', { container: 'c'.repeat(254) }],
]) {
  check(`runtime: the workload route refuses a bad ${what}`, async () => {
    refused(await s.runtime(target(), params), 400)
  })
}

check('runtime: a part of the path that is blank or over 253 bytes is 400', async () => {
  const long = 'n'.repeat(254)
  for (const w of [
    { ns: ' ', name: 'web' },
    { ns: long, name: 'web' },
    { ns: 'a', name: long },
    { ns: 'a', name: ' ' },
    { ns: 'a', kind: long, name: 'web' },
  ])
    refused(await s.runtime(w), 400, JSON.stringify(w).slice(0, 30))
  ok(await s.runtime({ ns: 'n'.repeat(253), name: 'web' }))
})

check('runtime: limit counts rows over all containers, truncated says that there are more', async () => {
  const w = target()
  const paths = ['/bin/a', '/bin/b', '/bin/c', '/bin/d']
  await post(...paths.flatMap((path) => ['app', 'side'].map((container_name) => w.exe({ path, container_name }))))
  for (const [limit, count, truncated] of [
    [8, 8, false],
    [7, 7, true],
    [1, 1, true],
    [0, 1, true],
    [-4, 1, true],
  ]) {
    const got = await read(w, { limit })
    assert.deepEqual(
      [got.containers.flatMap((c) => c.entries).length, got.truncated],
      [count, truncated],
      `limit ${limit}`,
    )
  }
  const got = await read(w, { container: 'app', limit: 3 })
  assert.deepEqual([got.containers[0].entries.map((e) => e.path), got.truncated], [paths.slice(0, 3), true])
})

check('runtime: limit is 1000 by default and at most 5000, on both routes', async () => {
  const w = target()
  const all = Array.from({ length: 5001 }, (_, i) => `/opt/tool-${String(i).padStart(4, '0')}`)
  assert.deepEqual(await post(...all.slice(1).map((path) => w.exe({ path }))), {
    accepted: 5000,
    dropped: 0,
    written: 5000,
  })
  await post(w.exe({ path: all[0] }))
  for (const [limit, count] of [
    [undefined, 1000],
    [9999, 5000],
  ]) {
    const [one, two] = [await read(w, { limit }), await image(w.image, { limit })]
    assert.deepEqual(
      one.containers[0].entries.map((e) => e.path),
      all.slice(0, count),
    )
    assert.deepEqual(
      two.entries.map((e) => e.path),
      all.slice(0, count),
    )
    assert.deepEqual([one.truncated, two.truncated], [true, true])
  }
})

// ---- reports

check('runtime: an entry without a workload is keyed to its pod', async () => {
  const w = target()
  await post(
    w.exe({ workload_kind: undefined, workload_name: undefined, path: '/bin/bare' }),
    w.exe({ workload_kind: null, workload_name: null, path: '/bin/null' }),
  )
  assert.deepEqual(
    (await entries({ ns: w.ns, kind: 'Pod', name: w.pod })).map((e) => e.path),
    ['/bin/bare', '/bin/null'],
  )
  assert.deepEqual(await entries(w), [])
})

check('runtime: the answer counts the entries taken, several of one file too, drops and changes', async () => {
  const w = target()
  const batch = [
    w.exe({ path: '/bin/a' }),
    w.exe({ path: '/bin/a' }),
    w.exe({ path: '/bin/b' }),
    w.exe({ kind: 'script' }),
  ]
  assert.deepEqual(await post(...batch), { accepted: 3, dropped: 1, written: 2 })
  assert.deepEqual(await post(...batch), { accepted: 3, dropped: 1, written: 0 }, 'the same again changes nothing')
  assert.deepEqual(await post(), { accepted: 0, dropped: 0, written: 0 })
})

for (const [what, over] of [
  ['an unknown kind', { kind: 'script' }],
  ['an unknown source', { source: 'audit' }],
  ['no kind', { kind: undefined }],
  ['no source', { source: undefined }],
  ['an empty path', { path: '' }],
  ['no path', { path: undefined }],
  ['a path of 4097 bytes', { path: `/${'p'.repeat(4096)}` }],
  ['a digest of no form', { image_digest: 'latest' }],
  ['a short digest', { image_digest: `sha256:${'a'.repeat(63)}` }],
  ['a digest of another algorithm', { image_digest: `md5:${'a'.repeat(32)}` }],
  ['no namespace', { pod_namespace: undefined }],
  ['a blank namespace', { pod_namespace: ' ' }],
  ['no container', { container_name: undefined }],
  ['an empty container', { container_name: '' }],
  ['only a workload kind', { workload_name: undefined }],
  ['only a workload name', { workload_kind: undefined }],
  ['neither workload nor pod', { workload_kind: undefined, workload_name: undefined, pod_name: undefined }],
  ['no first_seen', { first_seen: undefined }],
  ['no last_seen', { last_seen: undefined }],
  ['a time that is none', { last_seen: 'yesterday' }],
  ['a namespace of 254', { pod_namespace: 'n'.repeat(254) }],
  ['a container of 254', { container_name: 'c'.repeat(254) }],
  ['a workload kind of 64', { workload_kind: 'K'.repeat(64) }],
  ['a path of another type', { path: 7 }],
  ['a path_complete of another type', { path_complete: 'yes' }],
  ['an origin of another type', { origin: 3 }],
]) {
  check(`runtime: an entry with ${what} is dropped, the rest is stored`, async () => {
    const w = target()
    assert.deepEqual(await post(w.exe({ path: '/bin/a' }), w.exe(over), w.exe({ path: '/bin/b' })), {
      accepted: 2,
      dropped: 1,
      written: 2,
    })
    assert.deepEqual(
      (await entries(w)).map((e) => e.path),
      ['/bin/a', '/bin/b'],
    )
  })
}

check(
  'runtime: kind and source are trimmed and lower-cased, unknown keys ignored, the path kept as it is',
  async () => {
    const w = target()
    assert.deepEqual(
      await post(w.exe({ kind: ' EXEC ', source: 'Ebpf\t', path: ' /Bin/../Ünï code ', later: { a: 1 } })),
      {
        accepted: 1,
        dropped: 0,
        written: 1,
      },
    )
    const e = await entry(w)
    assert.deepEqual([e.kind, e.source, e.path], ['exec', 'ebpf', ' /Bin/../Ünï code '])
  },
)

check('runtime: a path is complete and its origin unknown unless the report says', async () => {
  const w = target()
  await post(
    w.exe({ path: '/a', path_complete: undefined, origin: undefined }),
    w.exe({ path: '/b', path_complete: false, origin: 'elsewhere' }),
  )
  assert.deepEqual(
    (await entries(w)).map((e) => [e.path, e.pathComplete, e.origin]),
    [
      ['/a', true, 'unknown'],
      ['/b', false, 'unknown'],
    ],
  )
})

check('runtime: a time in the future becomes now, a reversed pair is put right', async () => {
  const w = target()
  const [early, late] = [naiveIn(-900), naiveIn(-100)]
  await post(
    w.exe({ path: '/a', first_seen: early, last_seen: naiveIn(30 * HOUR) }),
    w.exe({ path: '/b', first_seen: late, last_seen: early }),
  )
  const [a, r] = await entries(w)
  sameTime(a.firstSeen, early)
  const off = Number(micros(a.lastSeen) / 1000n) - Date.now()
  assert.ok(off < 5_000 && off > -60_000, `about now: ${a.lastSeen}`)
  sameTime(r.firstSeen, early)
  sameTime(r.lastSeen, late)
})

check('runtime: a backfill has no origin but deleted and memfd', async () => {
  const w = target()
  const path = { deleted: '/tmp/x (deleted)', memfd: '/memfd:x (deleted)' }
  await post(...ORIGINS.map((origin) => w.exe({ source: 'backfill', origin, path: path[origin] ?? `/bin/${origin}` })))
  const got = Object.fromEntries((await entries(w)).map((e) => [e.path, [e.source, e.origin]]))
  for (const origin of ORIGINS)
    assert.deepEqual(got[path[origin] ?? `/bin/${origin}`], ['backfill', path[origin] ? origin : 'unknown'], origin)
})

check('runtime: a runtime sighting upgrades a backfill, never the other way', async () => {
  const w = target()
  await post(w.exe({ path: '/a', source: 'backfill' }), w.exe({ path: '/b', source: 'ebpf' }))
  assert.equal(
    (await post(w.exe({ path: '/a', source: 'ebpf', origin: 'unknown' }), w.exe({ path: '/b', source: 'backfill' })))
      .written,
    1,
  )
  assert.deepEqual(
    (await entries(w)).map((e) => e.source),
    ['ebpf', 'ebpf'],
  )
})

check('runtime: of two origins the more suspicious wins, and is never downgraded', async () => {
  const w = target()
  const path = '/bin/x'
  for (const [i, origin] of ORIGINS.entries()) {
    assert.equal((await post(w.exe({ path, origin }))).written, 1, `${origin} is stronger`)
    for (const weaker of ORIGINS.slice(0, i + 1))
      assert.equal((await post(w.exe({ path, origin: weaker }))).written, 0, `${weaker} adds nothing`)
    assert.equal((await entry(w)).origin, origin)
  }
})

check('runtime: reports of one path in one batch are merged', async () => {
  const w = target()
  const [first, last] = [naiveIn(-5000), naiveIn(-50)]
  const path = '/bin/x'
  assert.deepEqual(
    await post(
      w.exe({
        path,
        source: 'backfill',
        origin: 'deleted',
        path_complete: false,
        first_seen: naiveIn(-3000),
        last_seen: naiveIn(-2000),
      }),
      w.exe({ path, source: 'ebpf', origin: 'image', path_complete: true, first_seen: naiveIn(-400), last_seen: last }),
      w.exe({ path, source: 'backfill', path_complete: false, first_seen: first, last_seen: naiveIn(-60) }),
    ),
    { accepted: 3, dropped: 0, written: 1 },
  )
  const { firstSeen, lastSeen, ...rest } = await entry(w)
  assert.deepEqual(rest, { path, kind: 'exec', source: 'ebpf', origin: 'deleted', pathComplete: true })
  sameTime(firstSeen, first)
  sameTime(lastSeen, last)
})

check('runtime: a known path is rewritten when it was seen five minutes later, not before', async () => {
  const w = target()
  const base = inSecs(-7200)
  const at = (seconds) => naive(base + seconds * 1000)
  const seen = (seconds, over) => post(w.exe({ path: '/bin/x', first_seen: at(0), last_seen: at(seconds), ...over }))
  const is = async (what, first, last) => {
    const e = await entry(w)
    sameTime(e.firstSeen, at(first), what)
    sameTime(e.lastSeen, at(last), what)
  }
  await seen(0)
  assert.equal((await seen(299)).written, 0)
  await is('299 s', 0, 0)
  assert.equal((await seen(300)).written, 1)
  await is('300 s', 0, 300)
  assert.equal((await seen(0)).written, 0)
  await is('the past', 0, 300)
  assert.equal((await seen(310, { first_seen: at(-1) })).written, 1)
  await is('an earlier start', -1, 310)
})

check('runtime: a suffix becomes a complete path, never the other way', async () => {
  const w = target()
  const seen = (path_complete) => post(w.exe({ path: '/bin/x', path_complete }))
  await seen(false)
  assert.equal((await entry(w)).pathComplete, false)
  assert.equal((await seen(true)).written, 1)
  assert.equal((await seen(false)).written, 0)
  assert.equal((await entry(w)).pathComplete, true)
})

for (const path of ['/runtime/executables', '/runtime/coverage']) {
  check(`runtime: POST ${path} wants a list`, async () => {
    for (const body of ['{}', 'null', '"x"', '[{"a":', '']) refused(await send(path, body), 400, body)
  })

  check(`runtime: POST ${path} takes 5000 entries; of 5001 nothing is written`, async () => {
    const w = target()
    const made = (n) =>
      Array.from({ length: n }, (_, i) => (path.endsWith('coverage') ? w.beat() : w.exe({ path: `/bin/${i}` })))
    refused(await b.post(path, made(5001)), 413)
    const got = await read(w)
    assert.deepEqual([got.containers, got.coverage], [[], []])
    assert.deepEqual(ok(await b.post(path, made(5000))).json, { accepted: 5000, dropped: 0, written: 5000 })
  })

  const limit = path.endsWith('coverage') ? 4_194_304 : 8_388_608
  check(`runtime: POST ${path} takes a body of ${limit} bytes; of one more nothing is written`, async () => {
    const w = target()
    const one = [path.endsWith('coverage') ? w.beat() : w.exe()]
    refused(
      await rawPost(b, path, {
        token: '',
        headers: { 'content-length': String(limit + 1) },
        pieces: [padded(one, limit + 1)],
      }),
      413,
    )
    const got = await read(w)
    assert.deepEqual([got.containers, got.coverage], [[], []])
    assert.deepEqual(ok(await send(path, padded(one, limit))).json, { accepted: 1, dropped: 0, written: 1 })
  })
}

// ---- the read by image

check('runtime: the image route has the keys of the sheet in their order', async () => {
  const w = target()
  await post(w.exe({ path: '/bin/x' }))
  await beat(w.beat())
  const got = await image(w.image)
  inOrder(got, ['digest', 'entries', 'truncated', 'nextCursor', 'coverage'])
  assert.deepEqual([got.digest, got.truncated, got.nextCursor], [w.image, false, null])
  const e = only(got.entries, 'entry')
  inOrder(e, ['path', 'kind', 'pathComplete', 'origin', 'firstSeen', 'lastSeen', 'workloads'])
  for (const t of [e.firstSeen, e.lastSeen]) assert.match(t, naiveTime)
  inOrder(got.coverage, [
    'workloads',
    'instances',
    'lastHeartbeat',
    'librariesTracked',
    'instancesWithDrops',
    'windowHours',
  ])
})

check('runtime: an image that nobody runs has no entry and a coverage of zeros', async () => {
  for (const d of [digest(unique('none')), digest512(unique('none'))]) {
    assert.deepEqual(await image(d), { digest: d, entries: [], truncated: false, nextCursor: null, coverage: NOBODY })
  }
})

check('runtime: an entry of an image spans the workloads that ran the path', async () => {
  const one = target()
  const [two, side] = [target({ image: one.image }), target({ ns: one.ns, image: one.image, container: 'side' })]
  const [first, last] = [naiveIn(-9000), naiveIn(-9)]
  const path = '/bin/x'
  await post(
    one.exe({ path, origin: 'image', path_complete: false, first_seen: first, last_seen: naiveIn(-8000) }),
    side.exe({ path, origin: 'memfd', path_complete: false, first_seen: naiveIn(-700), last_seen: naiveIn(-600) }),
    two.exe({ path, origin: 'otherFs', path_complete: true, first_seen: naiveIn(-500), last_seen: last }),
    two.exe({ path: '/bin/y' }),
    two.exe({ path: '/bin/other', image_digest: digest(unique('other')) }),
  )
  const got = (await image(one.image)).entries
  assert.deepEqual(
    got.map(({ firstSeen, lastSeen, ...rest }) => rest),
    [
      { path, kind: 'exec', pathComplete: true, origin: 'memfd', workloads: 2 },
      { path: '/bin/y', kind: 'exec', pathComplete: true, origin: 'image', workloads: 1 },
    ],
  )
  sameTime(got[0].firstSeen, first)
  sameTime(got[0].lastSeen, last)
})

check('runtime: an image is read in pages by kind and path', async () => {
  const w = target()
  const rows = ['exec:/b', 'exec:/B', 'exec:/a:b', 'lib:/b', 'lib:/a', 'lib:/a b', 'exec:/c']
  await post(...rows.map((r) => w.exe({ kind: r.slice(0, r.indexOf(':')), path: r.slice(r.indexOf(':') + 1) })))
  const order = [...rows].sort(byBytes)
  const key = (e) => `${e.kind}:${e.path}`
  for (const limit of [1, 3, 7]) {
    const seen = []
    for (let after; ; ) {
      const page = await image(w.image, { limit, after })
      seen.push(...page.entries.map(key))
      assert.equal(page.truncated, seen.length < rows.length)
      assert.equal(page.nextCursor, page.truncated ? seen.at(-1) : null)
      if (!page.truncated) break
      after = page.nextCursor
    }
    assert.deepEqual(seen, order, `pages of ${limit}`)
  }
  assert.deepEqual(
    (await image(w.image, { kind: 'lib' })).entries.map(key),
    order.filter((k) => k.startsWith('lib')),
  )
})

check('runtime: the image route refuses a bad digest, kind, cursor or limit', async () => {
  const hex = 'a'.repeat(128)
  for (const d of [
    'latest',
    `sha256:${hex.slice(0, 63)}`,
    `sha256:${hex.slice(0, 65)}`,
    `sha512:${hex.slice(0, 64)}`,
    `sha512:${hex}a`,
    `md5:${hex.slice(0, 32)}`,
    hex.slice(0, 64),
    `sha256:${'g'.repeat(64)}`,
  ])
    refused(await s.image(d), 400, d)
  const d = digest('any')
  for (const params of [
    { kind: 'script' },
    { after: 'script:/x' },
    { after: '/x' },
    { after: 'exec' },
    { limit: 'many' },
  ])
    refused(await s.image(d, params), 400, JSON.stringify(params))
})

check('runtime: the coverage of an image counts workloads, instances and drops inside the window', async () => {
  const [one, two] = [target(), target()]
  const image_digest = one.image
  const last = naiveIn(-20)
  await beat(
    one.beat(),
    one.beat({ events_dropped: 3 }),
    two.beat({ image_digest, heartbeat_at: last }),
    target({ image: image_digest }).beat({ heartbeat_at: naiveIn(-30 * HOUR), mode: 'exec', events_dropped: 1 }),
  )
  const { lastHeartbeat, ...rest } = (await image(image_digest)).coverage
  assert.ok(micros(lastHeartbeat) >= micros(last))
  assert.deepEqual(rest, { workloads: 2, instances: 3, librariesTracked: true, instancesWithDrops: 1, windowHours: 24 })
  const wide = (await image(image_digest, { window_hours: 48 })).coverage
  assert.deepEqual(
    [wide.workloads, wide.instances, wide.librariesTracked, wide.instancesWithDrops, wide.windowHours],
    [3, 4, false, 2, 48],
  )
})

check('runtime: the window is clamped to 1..720 hours, on both routes', async () => {
  const w = target()
  await beat(w.beat())
  for (const [asked, hours] of [
    [undefined, 24],
    [0, 1],
    [-9, 1],
    [720, 720],
    [721, 720],
  ]) {
    assert.equal((await coverage(w, { window_hours: asked })).windowHours, hours)
    assert.equal((await image(w.image, { window_hours: asked })).coverage.windowHours, hours)
  }
})

// ---- coverage

check('runtime: a container watched from its start without a gap is covered', async () => {
  const w = target()
  const [since, at] = [naiveIn(-48 * HOUR), naiveIn(-1)]
  assert.deepEqual(await beat(w.beat({ tracking_since: since, heartbeat_at: at })), {
    accepted: 1,
    dropped: 0,
    written: 1,
  })
  const { lastHeartbeat, observedSince, ...rest } = await coverage(w)
  assert.deepEqual(rest, {
    containerName: 'app',
    imageDigest: w.image,
    instances: 1,
    mode: 'full',
    librariesTracked: true,
    covered: true,
    reason: null,
    reasonDetail: null,
    windowHours: 24,
  })
  for (const t of [lastHeartbeat, observedSince]) assert.match(t, naiveTime)
  sameTime(lastHeartbeat, at)
  sameTime(observedSince, since)
})

check('runtime: coverage is one object per container and digest with a heartbeat in the window', async () => {
  const w = target()
  const [x, y] = [digest('one'), digest('two')].sort(byBytes)
  await beat(
    w.beat({ container_name: 'web', image_digest: y }),
    w.beat({ container_name: 'web', image_digest: x }),
    w.beat({ container_name: 'web', image_digest: x }),
    w.beat({ container_name: 'init', image_digest: undefined }),
    w.beat({ container_name: 'gone', heartbeat_at: naiveIn(-25 * HOUR) }),
  )
  assert.deepEqual(
    (await read(w)).coverage.map((c) => [c.containerName, c.imageDigest, c.instances]),
    [
      ['init', '', 1],
      ['web', x, 2],
      ['web', y, 1],
    ],
  )
  assert.ok((await read(w, { window_hours: 26 })).coverage.some((c) => c.containerName === 'gone'))
})

check('runtime: the mode is that of the newest heartbeat, libraries are tracked when every instance does', async () => {
  const w = target()
  await beat(
    w.beat({ heartbeat_at: naiveIn(-100) }),
    w.beat({ heartbeat_at: naiveIn(-50), mode: 'exec', lib_probe: false }),
  )
  const c = await coverage(w)
  assert.deepEqual([c.mode, c.librariesTracked, c.instances, c.reason], ['exec', false, 2, 'libraries_not_tracked'])
})

for (const [what, over, expected] of [
  ['a container that ran before the probe and is watched since before the window', { start_mode: 'backfill' }, null],
  ['a container that ended cleanly', { heartbeat_at: naiveIn(-5000), ended: true }, null],
  ['an instance without the exec probe', { exec_probe: false }, 'probes_missing'],
  ['an instance without the library probe', { lib_probe: false }, 'libraries_not_tracked'],
  ['an instance in mode exec', { mode: 'exec' }, 'libraries_not_tracked'],
  ['an instance that lost events', { events_dropped: 1 }, 'events_dropped'],
  ['an instance with unsent entries', { unsent: 1 }, 'events_pending'],
  ['an instance with an incomplete inventory', { incomplete: true }, 'incomplete_paths'],
  ['an instance whose heartbeat is late', { heartbeat_at: naiveIn(-1100) }, 'capture_gap'],
  ['a container that is watched for less than the window', { tracking_since: naiveIn(-23 * HOUR) }, 'capture_gap'],
  [
    'a container backfilled inside the window',
    { start_mode: 'backfill', tracking_since: naiveIn(-HOUR) },
    'capture_gap',
  ],
]) {
  check(`runtime: ${what} is ${expected ?? 'covered'}`, async () => {
    const w = target()
    await beat(w.beat(over))
    assert.equal(await reason(w), expected)
  })
}

check('runtime: the reason is the first failing check in the order of the spec', async () => {
  const faults = [
    ['probes_missing', { exec_probe: false }],
    ['libraries_not_tracked', { lib_probe: false }],
    ['events_dropped', { events_dropped: 2 }],
    ['events_pending', { unsent: 2 }],
    ['incomplete_paths', { incomplete: true }],
    ['capture_gap', { tracking_since: naiveIn(-60) }],
  ]
  for (const [i, [expected]] of faults.entries()) {
    const w = target()
    await beat(w.beat(Object.assign({}, ...faults.slice(i).map(([, over]) => over))))
    assert.equal(await reason(w), expected)
  }
})

check('runtime: one bad instance uncovers all', async () => {
  const w = target()
  await beat(w.beat(), w.beat(), w.beat({ events_dropped: 1 }))
  assert.equal(await reason(w), 'events_dropped')
})

check('runtime: a newer instance watched from its start keeps the older coverage', async () => {
  const w = target()
  await beat(w.beat(), w.beat({ tracking_since: naiveIn(-HOUR) }))
  assert.equal(await reason(w), null)
  await beat(w.beat({ tracking_since: naiveIn(-HOUR), start_mode: 'backfill' }))
  assert.equal(await reason(w), 'capture_gap')
})

check('runtime: an incomplete path uncovers its container until it is complete', async () => {
  const [w, other] = [target(), target()]
  await beat(w.beat(), other.beat())
  await post(w.exe({ path: 'tail/of/it', path_complete: false }))
  assert.equal(await reason(w), 'incomplete_paths')
  assert.equal(await reason(other), null)
  await post(w.exe({ path: 'tail/of/it', path_complete: true }))
  assert.equal(await reason(w), null)
})

check('runtime: a live pod that runs the container without a fresh heartbeat is a gap', async () => {
  const w = target()
  const second = `${w.ns}-1`
  const running2 = (containers, over) => s.pods(pod({ ns: w.ns, workload: w.name, name: second, containers, ...over }))
  await s.pods(pod({ ns: w.ns, workload: w.name, name: w.pod, containers: [running('app', w.image)] }))
  await beat(w.beat())
  assert.equal(await reason(w), null)
  await running2([running('side', w.image)])
  assert.equal(await reason(w), null, 'a pod without that container')
  await running2([running('side', w.image), running('app', w.image)])
  assert.equal(await reason(w), 'capture_gap', 'a pod that nobody watches')
  ok(await b.post('/pod/mark_dead', { pod_name: second }))
  assert.equal(await reason(w), null, 'a dead pod')
  await running2([running('app', w.image)])
  await beat(w.beat({ pod_name: second, tracking_since: naiveIn(-60) }))
  assert.equal(await reason(w), null, 'a pod that is watched')
})

check('runtime: an older heartbeat changes nothing, a newer one does', async () => {
  const w = target()
  const one = w.beat({ heartbeat_at: naiveIn(-300) })
  await beat(one)
  const was = await coverage(w)
  assert.equal(
    (await beat({ ...one, heartbeat_at: naiveIn(-400), events_dropped: 4, unsent: 4, mode: 'exec', incomplete: true }))
      .written,
    0,
  )
  assert.deepEqual(await coverage(w), was)
  assert.equal((await beat({ ...one, heartbeat_at: naiveIn(-100), unsent: 4 })).written, 1)
  assert.equal(await reason(w), 'events_pending')
  await beat({ ...one, heartbeat_at: naiveIn(-50), unsent: 0 })
  assert.equal(await reason(w), null)
})

check('runtime: the heartbeats of a container that ended change nothing', async () => {
  const w = target()
  const one = w.beat({ heartbeat_at: naiveIn(-300), ended: true })
  await beat(one)
  const was = await coverage(w)
  await beat({ ...one, heartbeat_at: naiveIn(-10), ended: false, events_dropped: 4, exec_probe: false })
  assert.deepEqual(await coverage(w), was)
  assert.equal(was.reason, null)
})

check('runtime: a late heartbeat restarts the run', async () => {
  const w = target()
  const base = Date.now()
  const at = (hours) => naive(base - hours * 3_600_000)
  const one = w.beat({ heartbeat_secs: HOUR, tracking_since: at(100) }) // late after 10 860 s
  for (const hours of [30, 27, 20, 17, 14, 11, 8, 5, 2]) await beat({ ...one, heartbeat_at: at(hours) })
  sameTime((await coverage(w)).observedSince, at(20))
  assert.equal(await reason(w), 'capture_gap')
  assert.equal(await reason(w, { window_hours: 21 }), 'capture_gap')
  assert.equal(await reason(w, { window_hours: 19 }), null)
})

for (const [what, was] of [
  ['exec probe', { exec_probe: false }],
  ['library probe', { lib_probe: false }],
  ['mode', { mode: 'exec' }],
]) {
  check(`runtime: a change of the ${what} restarts the run`, async () => {
    const w = target()
    const base = Date.now()
    const at = (hours) => naive(base - hours * 3_600_000)
    const one = w.beat({ heartbeat_secs: 86_400, tracking_since: at(100) })
    await beat({ ...one, ...was, heartbeat_at: at(40) })
    await beat({ ...one, heartbeat_at: at(30) })
    await beat({ ...one, heartbeat_at: at(1) })
    sameTime((await coverage(w)).observedSince, at(30))
    assert.equal(await reason(w, { window_hours: 29 }), null)
    assert.equal(await reason(w, { window_hours: 31 }), 'capture_gap')
  })
}

check('runtime: a lost event uncovers every window that holds it, and no other', async () => {
  const w = target()
  const base = Date.now()
  const at = (hours) => naive(base - hours * 3_600_000)
  const one = w.beat({ heartbeat_secs: 86_400 })
  for (const [hours, events_dropped] of [
    [20, 0],
    [10, 7],
    [1, 0],
  ])
    await beat({ ...one, heartbeat_at: at(hours), events_dropped })
  assert.equal(await reason(w, { window_hours: 9 }), null)
  assert.equal(await reason(w, { window_hours: 11 }), 'events_dropped')
})

check('runtime: an inventory once incomplete stays so', async () => {
  const w = target()
  const one = w.beat({ heartbeat_at: naiveIn(-200), incomplete: true })
  await beat(one)
  await beat({ ...one, heartbeat_at: naiveIn(-10), incomplete: false })
  assert.equal(await reason(w), 'incomplete_paths')
})

check(
  'runtime: of several heartbeats of a container in one batch the newest counts, drops and incompleteness of all',
  async () => {
    for (const [older, expected] of [
      [{ events_dropped: 2 }, 'events_dropped'],
      [{ incomplete: true }, 'incomplete_paths'],
      [{ unsent: 3 }, null],
    ]) {
      const w = target()
      const one = w.beat({ heartbeat_at: naiveIn(-20) })
      await beat({ ...one, heartbeat_at: naiveIn(-30), ...older }, one, { ...one, heartbeat_at: naiveIn(-40) })
      sameTime((await coverage(w)).lastHeartbeat, one.heartbeat_at)
      assert.equal(await reason(w), expected)
    }
  },
)

for (const [what, over] of [
  ...[
    'pod_namespace',
    'pod_name',
    'container_name',
    'container_id',
    'node_name',
    'mode',
    'exec_probe',
    'lib_probe',
    'start_mode',
    'tracking_since',
    'heartbeat_at',
    'heartbeat_secs',
  ].map((key) => [`no ${key}`, { [key]: undefined }]),
  ['an empty namespace', { pod_namespace: '' }],
  ['a name that is not trimmed', { workload_name: ' web' }],
  ['a container name of 254', { container_name: 'c'.repeat(254) }],
  ['a kind of 64', { workload_kind: 'K'.repeat(64) }],
  ['a container_id that is not alphanumeric', { container_id: 'containerd://abc' }],
  ['a container_id of 129', { container_id: 'a'.repeat(129) }],
  ['a bad digest', { image_digest: 'sha256:abc' }],
  ['an unknown mode', { mode: 'off' }],
  ['an unknown start_mode', { start_mode: 'resume' }],
  ['a cadence of 0', { heartbeat_secs: 0 }],
  ['a cadence of 86401', { heartbeat_secs: 86_401 }],
  ['a probe of another type', { exec_probe: 'true' }],
  ['drops of another type', { events_dropped: '3' }],
  ['a time that is none', { heartbeat_at: 'now' }],
]) {
  check(`runtime: a heartbeat with ${what} is dropped, the rest is stored`, async () => {
    const w = target()
    assert.deepEqual(await beat(w.beat(), w.beat(over), w.beat()), { accepted: 2, dropped: 1, written: 2 })
    assert.equal((await coverage(w)).instances, 2)
  })
}

check('runtime: what a heartbeat may leave out counts as nothing', async () => {
  const w = target()
  const { events_dropped: _d, unsent: _u, incomplete: _i, ended: _e, ...bare } = w.beat()
  assert.deepEqual(await beat(bare), { accepted: 1, dropped: 0, written: 1 })
  assert.equal(await reason(w), null)
})

// ---- the database function, and the passing of time

check('runtime: kg_runtime_coverage says in SQL what the route says', async (c) => {
  pg ??= await postgres()
  if (!pg) return c.skip('no PostgreSQL server programs found')
  const { o, t } = await another({ DATABASE_URL: pg.url })
  const ask = async (w, hours = 24, cluster = 'primary') =>
    only(
      await pg.sql(
        `select covered, observed_since, reason from kg_runtime_coverage('${cluster}', '${w.ns}', '${w.kind}', '${w.name}', '${w.container}', '${w.image}', ${hours})`,
      ),
      'row',
    )
  for (const [over, expected] of [
    [{}, null],
    [{ exec_probe: false }, 'probes_missing'],
    [{ unsent: 1 }, 'events_pending'],
    [{ tracking_since: naiveIn(-HOUR) }, 'capture_gap'],
  ]) {
    const w = target()
    ok(await t.heartbeats([w.beat(over)]))
    const [row, shown] = [await ask(w), await coverage(w, {}, t)]
    assert.deepEqual([row.covered, row.reason], [expected === null ? 't' : 'f', expected])
    assert.deepEqual([shown.covered, shown.reason], [expected === null, expected])
    sameTime(row.observed_since.replace(' ', 'T'), shown.observedSince)
    assert.equal((await ask(w, 24, 'secondary')).reason, 'no_runtime_data')
  }
  const nobody = await ask(target())
  assert.deepEqual([nobody.covered, nobody.reason], ['f', 'no_runtime_data'])
  await o.stop()
})

check(
  'runtime: a heartbeat is on time for three intervals and a minute, and counts while it is in the window',
  async (c) => {
    pg ??= await postgres()
    if (!pg) return c.skip('no PostgreSQL server programs found')
    const { o, t } = await another({ DATABASE_URL: pg.url })
    const [w, ended] = [target(), target()]
    ok(await t.heartbeats([w.beat({ heartbeat_secs: 300 }), ended.beat({ ended: true })]))
    await pg.age(930)
    assert.equal(await reason(w, {}, t), null)
    await pg.age(31)
    assert.equal(await reason(w, {}, t), 'capture_gap')
    assert.equal(await reason(ended, {}, t), null, 'what ended is never late')
    await pg.age(HOUR - 961 - 30)
    assert.equal((await read(ended, { window_hours: 1 }, t)).coverage.length, 1)
    await pg.age(31)
    assert.deepEqual((await read(ended, { window_hours: 1 }, t)).coverage, [])
    await o.stop()
  },
)

check('runtime: retention deletes what was not seen for so many days, 0 keeps all', async (c) => {
  const { o, t } = await another({ JOBS: 'external' })
  const w = target()
  const day = 24 * HOUR
  const reports = [1.9, 2.1, 29, 31].map((days) =>
    w.exe({ path: `/${days}`, first_seen: naiveIn(-90 * day), last_seen: naiveIn(-days * day) }),
  )
  const beats = [1.9, 2.1, 29].map((days) =>
    w.beat({ container_name: `c${days}`, tracking_since: naiveIn(-90 * day), heartbeat_at: naiveIn(-days * day) }),
  )
  /** One pass; returns the paths and the containers that it deleted, and puts them back. A report that is still stored is not written again. */
  const pass = async (days, args) => {
    ok(await t.heartbeats(beats))
    const done = await runJob(o, 'runtime-retention', {
      env: days === undefined ? {} : { RUNTIME_INVENTORY_RETENTION_DAYS: days },
      args,
    })
    if (!done) return null
    assert.equal(done.code, 0, done.log)
    const heard = (await read(w, { window_hours: 720 }, t)).coverage.map((x) => x.containerName)
    const deleted = []
    for (const r of reports) if (ok(await t.executables([r])).json.written) deleted.push(r.path)
    return [deleted, beats.map((x) => x.container_name).filter((name) => !heard.includes(name))]
  }
  ok(await t.executables(reports))
  const first = await pass('0')
  if (!first) return c.skip('no dist/jobs/run.js beside BROKER_CMD')
  assert.deepEqual(first, [[], []])
  assert.deepEqual(await pass('2', ['--dry-run']), [[], []], 'a dry run only counts')
  assert.deepEqual(await pass(undefined), [['/31'], []], '30 days by default')
  assert.deepEqual(await pass('2'), [
    ['/2.1', '/29', '/31'],
    ['c2.1', 'c29'],
  ])
  await o.stop()
})
