// Image inventory: containers and pod_security of POST /pod/spec, GET /images, GET /images/{digest}, GET /workloads/.../containers.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  running as container,
  digest,
  digest512,
  metric,
  micros,
  naiveTime,
  ok,
  pod,
  postgres,
  query,
  refused,
  sameKeys,
  unique,
} from '../lib/profiling.mjs'
import { authEnv, tokens } from '../lib/supply-chain.mjs'

const ENV = { ...authEnv, JOBS: 'external', PEER_STALE_ALIVE_SECS: '0' }
const seg = encodeURIComponent
/** The routes of this file, each with the token that it needs. */
function inventory(broker) {
  const [reader, agent] = [broker.as(tokens.read), broker.as(tokens.ingest)]
  const workload = (ns, kind = 'Deployment', name = 'web') =>
    reader.get(`/workloads/${seg(ns)}/${seg(kind)}/${seg(name)}/containers`)
  return {
    agent,
    workload,
    async post(...pods) {
      for (const p of pods) ok(await agent.post('/pod/spec', p))
      return pods.at(-1)
    },
    list: (params) => reader.get(`/images${query(params)}`),
    images: async (params) => ok(await reader.get(`/images${query(params)}`)).json,
    image: (d) => reader.get(`/images/${d}`),
    /** The rows of a workload, one per container and digest, each with the list that holds it. */
    async rows(...w) {
      const r = await workload(...w)
      if (r.status === 404) return []
      return ok(r).json.containers.flatMap((c) =>
        ['digests', 'previousDigests'].flatMap((list) =>
          c[list].map((e) => ({ container: c.containerName, kind: c.containerKind, list, ...e })),
        ),
      )
    },
  }
}

let b
let v
let pg = null
const cleanups = []
before(async () => {
  b = await startBroker({ env: ENV })
  v = inventory(b)
})
after(async () => {
  for (const stop of cleanups.reverse()) await stop().catch(() => {})
  await b?.stop()
  await pg?.stop()
})

/** A broker whose past a case decides: later(seconds) makes everything stored older and starts the broker again. */
async function clocked(c, env = {}) {
  pg ??= await postgres()
  if (!pg) {
    c.skip('no PostgreSQL server programs found')
    return undefined
  }
  let o
  const self = {
    async later(seconds) {
      await o?.stop()
      if (seconds) await pg.age(seconds)
      o = await startBroker({ env: { ...ENV, DATABASE_URL: pg.url, ...env } })
      Object.assign(self, inventory(o))
    },
    stop: () => o.stop(),
  }
  cleanups.push(() => o?.stop())
  await self.later(0)
  return self
}

const fresh = () => digest(unique('image'))
const only = (list, what = 'row') => {
  assert.equal(list.length, 1, `one ${what}: ${JSON.stringify(list)}`)
  return list[0]
}
const recent = (time, what) => {
  assert.match(time, naiveTime, what)
  assert.ok(Math.abs(Number(micros(time) / 1000n) - Date.now()) < 60_000, `${what} is about now: ${time}`)
}
const notFound = (r, what) => assert.deepEqual([r.status, r.text], [404, 'No data found'], what)
const without = (o, ...keys) => Object.fromEntries(Object.entries(o).filter(([k]) => !keys.includes(k)))
const malformed = async (field) =>
  (
    (await metric(b, 'svc_image_inventory_malformed_total', { field })) ??
    (await metric(b, 'kguardian_image_inventory_malformed_total', { field }))
  )?.value ?? 0
/** The pod that each container and digest names. */
const named = (rows) => Object.fromEntries(rows.map((r) => [`${r.container} ${r.digest}`, r.lastPodName]))
const stored = async (d) => only(ok(await v.image(d)).json.workloads, 'workload')

const CONTEXT = {
  privileged: false,
  allowPrivilegeEscalation: false,
  runAsNonRoot: true,
  runAsUser: 1000,
  runAsGroup: 2000,
  readOnlyRootFilesystem: true,
  capabilitiesAdd: ['NET_ADMIN', 'SYS_TIME'],
  capabilitiesDrop: ['ALL'],
  seccompProfileType: 'RuntimeDefault',
}
const POD_SECURITY = {
  serviceAccountName: 'web',
  automountServiceAccountToken: false,
  hostPID: true,
  hostIPC: false,
  hostNetwork: true,
  hostUsers: false,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: 1000,
    runAsGroup: 2000,
    fsGroup: 3000,
    seccompProfileType: 'RuntimeDefault',
  },
}
const POD_KEYS = [
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
const IMAGE_KEYS = ['digest', 'repository', 'tags', 'digestKind', 'firstSeen', 'lastSeen']
// What the newest brokers of the ecosystem add.
const NEWEST = ['sbomSources', 'nodeCatalog']

// ---- what is kept of a container

check('images: what a pod runs is on the list, under its digest and under its workload, with every key', async () => {
  const ns = unique('full')
  const d = fresh()
  await v.post(
    pod({
      ns,
      name: `${ns}-0`,
      pod_security: POD_SECURITY,
      containers: [container('app', d, { security_context: CONTEXT, of_no_interest: 1 })],
    }),
  )

  const list = await v.images({ namespace: ns })
  sameKeys(list, ['items', 'nextAfter'], 'the list')
  assert.equal(list.nextAfter, null)
  const item = only(list.items, 'image')
  sameKeys(without(item, ...NEWEST), [...IMAGE_KEYS, 'runningContainers'], 'an image of the list')
  assert.deepEqual(without(item, 'firstSeen', 'lastSeen', ...NEWEST), {
    digest: d,
    repository: 'registry.test/team/app',
    tags: ['v1'],
    digestKind: 'repo',
    runningContainers: 1,
  })
  recent(item.firstSeen, 'firstSeen')
  recent(item.lastSeen, 'lastSeen')

  const image = ok(await v.image(d)).json
  sameKeys(without(image, ...NEWEST, 'runningContainers'), [...IMAGE_KEYS, 'workloads', 'truncated'], 'an image')
  assert.deepEqual(
    IMAGE_KEYS.map((k) => image[k]),
    IMAGE_KEYS.map((k) => item[k]),
  )
  assert.equal(image.truncated, false)
  const use = only(image.workloads, 'workload')
  assert.deepEqual(without(use, 'firstSeen', 'lastSeen'), {
    clusterId: 'primary',
    namespace: ns,
    workloadKind: 'Deployment',
    workloadName: 'web',
    containerName: 'app',
    containerKind: 'regular',
    imageRef: 'registry.test/team/app:v1',
    state: 'running',
    stateReason: null,
    ranAsInit: false,
    running: true,
  })
  recent(use.firstSeen, 'firstSeen')
  recent(use.lastSeen, 'lastSeen')

  const workload = ok(await v.workload(ns)).json
  assert.deepEqual(workload, {
    namespace: ns,
    kind: 'Deployment',
    name: 'web',
    runningWindowSeconds: 900,
    truncated: false,
    containers: [
      {
        clusterId: 'primary',
        containerName: 'app',
        containerKind: 'regular',
        mixedDigests: false,
        previousDigests: [],
        digests: [
          {
            digest: d,
            imageRef: 'registry.test/team/app:v1',
            securityContext: CONTEXT,
            podSecurity: POD_SECURITY,
            lastPodName: `${ns}-0`,
            firstSeen: use.firstSeen,
            lastSeen: use.lastSeen,
            state: 'running',
            stateReason: null,
            ranAsInit: false,
          },
        ],
      },
    ],
  })
})

check('images: the answer to POST /pod/spec and the pod record carry nothing of the inventory', async () => {
  const ns = unique('answer')
  const p = pod({ ns, pod_security: POD_SECURITY, containers: [container('app', fresh())] })
  assert.deepEqual(Object.keys(ok(await v.agent.post('/pod/spec', p)).json), POD_KEYS)
  assert.deepEqual(Object.keys(ok(await v.agent.get(`/pod/name/${p.pod_name}`)).json), POD_KEYS)
})

// sent: kind, state, reason; answered: kind, state, reason, running, ranAsInit
const STATES = [
  ['regular', undefined, undefined, 'regular', null, null, true, false],
  ['regular', null, null, 'regular', null, null, true, false],
  ['regular', 'running', undefined, 'regular', 'running', null, true, false],
  ['Regular', 'waiting', 'CrashLoopBackOff', 'regular', 'waiting', 'CrashLoopBackOff', true, false],
  ['regular', 'waiting', 'ImagePullBackOff', 'regular', 'waiting', 'ImagePullBackOff', false, false],
  ['regular', 'waiting', undefined, 'regular', 'waiting', null, false, false],
  ['regular', 'terminated', 'Completed', 'regular', 'terminated', 'Completed', false, false],
  ['regular', 'paused', 'CrashLoopBackOff', 'regular', null, null, true, false],
  ['regular', undefined, 'Completed', 'regular', null, null, true, false],
  ['init', 'terminated', 'Completed', 'init', 'terminated', 'Completed', false, true],
  ['INIT', 'running', undefined, 'init', 'running', null, true, false],
  ['ephemeral', 'running', undefined, 'ephemeral', 'running', null, true, false],
  ['ephemeral', 'terminated', 'Error', 'ephemeral', 'terminated', 'Error', false, false],
]
check('images: kind, state and reason are normalised and decide running and ranAsInit', async () => {
  const ns = unique('states')
  const digests = STATES.map(fresh)
  await v.post(
    pod({
      ns,
      containers: STATES.map(([kind, state, state_reason], i) =>
        container(`c${i}`, digests[i], { kind, state, state_reason }),
      ),
    }),
  )
  const rows = await v.rows(ns)
  const items = (await v.images({ namespace: ns })).items
  for (const [i, [kind, state, reason, ...want]] of STATES.entries()) {
    const why = JSON.stringify([kind, state, reason])
    const use = await stored(digests[i])
    assert.deepEqual([use.containerKind, use.state, use.stateReason, use.running, use.ranAsInit], want, why)
    const row = only(rows.filter((r) => r.container === `c${i}`))
    assert.deepEqual(
      [row.digest, row.kind, row.state, row.stateReason, row.ranAsInit],
      [digests[i], want[0], want[1], want[2], want[4]],
      why,
    )
    if (want[3]) assert.equal(row.list, 'digests', why)
    assert.equal(items.find((x) => x.digest === digests[i]).runningContainers, want[3] ? 1 : 0, why)
  }
})

check('images: an entry without a usable name, kind or image is skipped, the others are kept', async () => {
  const ns = unique('skipped')
  const bad = [
    { name: undefined },
    { name: null },
    { name: 'n'.repeat(254) },
    { name: 7 },
    { kind: undefined },
    { kind: 'sidecar' },
    { kind: '' },
    { kind: 3 },
    { image: '' },
    { image: ' \t ' },
  ].map((over, i) => ({ d: fresh(), over: { name: `bad${i}`, ...over } }))
  const long = 'n'.repeat(253)
  const good = fresh()
  await v.post(
    pod({
      ns,
      containers: [...bad.map(({ d, over }) => container('x', d, over)), null, 5, 'app', [], {}, container(long, good)],
    }),
  )
  const row = only(await v.rows(ns))
  assert.deepEqual([row.container, row.digest], [long, good])
  for (const { d, over } of bad) notFound(await v.image(d), JSON.stringify(over))
})

check('images: a malformed list of containers costs neither the pod nor what was stored', async () => {
  const ns = unique('tolerated')
  const p = await v.post(pod({ ns, containers: [container('app', fresh())] }))
  const was = ok(await v.workload(ns)).json
  for (const [i, containers] of ['app', 5, true, {}, { 0: container('app', fresh()) }, null, [], [null]].entries()) {
    await v.post({ ...p, containers, pod_identity: `identity-${i}` })
    assert.equal((await v.agent.get(`/pod/name/${p.pod_name}`)).json.pod_identity, `identity-${i}`)
    assert.deepEqual(ok(await v.workload(ns)).json, was, JSON.stringify(containers))
  }
})

check('images: the first entry of a name wins', async () => {
  const ns = unique('twice')
  const [first, second] = [fresh(), fresh()]
  await v.post(
    pod({
      ns,
      containers: [container('app', first), container('app', second), container('other', second, { kind: 'init' })],
    }),
  )
  assert.deepEqual(
    (await v.rows(ns)).map((r) => [r.container, r.digest]).sort(),
    [
      ['app', first],
      ['other', second],
    ].sort(),
  )
})

check('images: a digest is sha256 or sha512 in lower-case hex, of a known kind', async () => {
  const ns = unique('digests')
  const hex = digest(ns).slice(7)
  const good = [
    [fresh(), 'repo'],
    [fresh(), 'config'],
    [fresh(), 'pinned'],
    [digest512(ns), 'repo'],
  ]
  const bad = [
    [`sha256:${hex.toUpperCase().replace(/^./, 'A')}`, 'repo'],
    [`sha256:${hex.slice(1)}`, 'repo'],
    [`sha256:${hex}0`, 'repo'],
    [`sha512:${hex}`, 'repo'],
    [`md5:${hex}`, 'repo'],
    [hex, 'repo'],
    [`SHA256:${hex}`, 'repo'],
    [`sha256:${hex.replace(/^./, 'g')}`, 'repo'],
    [7, 'repo'],
    [`sha256:${hex}`, 'manifest'],
    [`sha256:${hex}`, undefined],
    [`sha256:${hex}`, null],
  ]
  await v.post(
    pod({ ns, containers: [...good, ...bad].map(([d, digest_kind], i) => container(`c${i}`, d, { digest_kind })) }),
  )
  assert.deepEqual((await v.rows(ns)).map((r) => r.digest).sort(), good.map(([d]) => d).sort())
  for (const [d, kind] of good) assert.equal(ok(await v.image(d)).json.digestKind, kind)
  notFound(await v.image(`sha256:${hex}`), 'the digest without a known kind')
})

check('images: nothing is taken from image_id or from pod_obj', async () => {
  const ns = unique('elsewhere')
  const [one, two] = [fresh(), fresh()]
  const status = {
    name: 'app',
    image: 'registry.test/team/app:v1',
    imageID: `registry.test/team/app@${two}`,
    state: { running: {} },
  }
  await v.post(
    pod({
      ns,
      containers: [container('app', one, { digest: undefined, digest_kind: undefined })],
      pod_obj: {
        metadata: { name: 'x' },
        spec: { containers: [{ name: 'app', image: `registry.test/team/app@${two}` }] },
        status: { containerStatuses: [status] },
      },
    }),
  )
  for (const d of [one, two]) notFound(await v.image(d))
  notFound(await v.workload(ns))
})

check(
  'images: a reference that is too long or holds control characters is kept as malformed_reference and counted',
  async () => {
    const ns = unique('reference')
    const fits = `registry.test/${'r'.repeat(1024 - 14)}`
    const bad = [
      `${fits}r`,
      'registry.test/ap\np:v1',
      'registry\u001b.test/app:v1',
      'registry.test/a\tpp:v1',
      'registry.test/app\u007f:v1',
      'registry.test/app\u2028:v1',
      'registry.test/app:v\u20291',
    ]
    const was = await malformed('image_ref')
    await v.post(pod({ ns, containers: [fits, ...bad].map((image, i) => container(`c${i}`, fresh(), { image })) }))
    const refs = new Map((await v.rows(ns)).map((r) => [r.container, r.imageRef]))
    assert.equal(refs.get('c0'), fits, '1024 bytes fit')
    for (const [i, image] of bad.entries())
      assert.equal(refs.get(`c${i + 1}`), 'malformed_reference', JSON.stringify(image).slice(0, 60))
    assert.equal(await malformed('image_ref'), was + bad.length)
  },
)

check('images: a repository over 512 and a tag over 128 characters are dropped and counted', async () => {
  const ns = unique('long')
  const [fits, over] = [fresh(), fresh()]
  const [repository, tag] = [`registry.test/${'r'.repeat(512 - 14)}`, 't'.repeat(128)]
  const was = [await malformed('repository'), await malformed('tag')]
  await v.post(
    pod({
      ns,
      containers: [
        container('fits', fits, { repository, tag }),
        container('over', over, { image: `registry.test/app@${over}`, repository: `${repository}r`, tag: `${tag}t` }),
      ],
    }),
  )
  const image = async (d) => {
    const i = ok(await v.image(d)).json
    return [i.repository, i.tags]
  }
  assert.deepEqual(await image(fits), [repository, [tag]])
  assert.deepEqual(await image(over), [null, []])
  assert.deepEqual([await malformed('repository'), await malformed('tag')], [was[0] + 1, was[1] + 1])
})

check(
  'images: a security context keeps its known keys, its capabilities sorted, each once, at most 64 of 64 characters',
  async () => {
    const ns = unique('context')
    const many = Array.from({ length: 64 }, (_, i) => `CAP_${String(i).padStart(2, '0')}`)
    const sent = {
      mixed: {
        ...CONTEXT,
        capabilitiesAdd: ['SYS_TIME', 'NET_ADMIN', 'SYS_TIME', 'AUDIT_WRITE', 'NET_ADMIN'],
        capabilitiesDrop: ['B', 'A'],
        procMount: 'Default',
        windowsOptions: { a: 1 },
      },
      full: {
        ...CONTEXT,
        capabilitiesAdd: [...many].reverse().concat(many),
        capabilitiesDrop: ['C'.repeat(65), 'D'.repeat(64)],
      },
      over: { ...CONTEXT, capabilitiesAdd: [...many, ...Array.from({ length: 20 }, (_, i) => `MORE_${i}`)] },
    }
    await v.post(
      pod({
        ns,
        containers: Object.entries(sent).map(([name, security_context]) =>
          container(name, fresh(), { security_context }),
        ),
      }),
    )
    const got = Object.fromEntries((await v.rows(ns)).map((r) => [r.container, r.securityContext]))
    assert.deepEqual(got.mixed, {
      ...CONTEXT,
      capabilitiesAdd: ['AUDIT_WRITE', 'NET_ADMIN', 'SYS_TIME'],
      capabilitiesDrop: ['A', 'B'],
    })
    assert.deepEqual(got.full.capabilitiesAdd, many)
    assert.ok(
      got.full.capabilitiesDrop.includes('D'.repeat(64)) && got.full.capabilitiesDrop.every((x) => x.length <= 64),
      'names of up to 64 characters',
    )
    assert.equal(got.over.capabilitiesAdd.length, 64)
    assert.deepEqual(got.over.capabilitiesAdd, [...new Set(got.over.capabilitiesAdd)].sort())
  },
)

check('images: a malformed pod_security is stored empty', async () => {
  for (const pod_security of ['privileged', 5, true, [POD_SECURITY]]) {
    const ns = unique('empty')
    await v.post(pod({ ns, pod_security, containers: [container('app', fresh())] }))
    assert.deepEqual(Object.keys(only(await v.rows(ns)).podSecurity ?? {}), [], JSON.stringify(pod_security))
  }
})

check('images: a pod has at most 64 containers', async () => {
  const ns = unique('crowd')
  await v.post(
    pod({ ns, workload: 'fits', containers: Array.from({ length: 64 }, (_, i) => container(`c${i}`, fresh())) }),
  )
  await v.post(
    pod({ ns, workload: 'over', containers: Array.from({ length: 70 }, (_, i) => container(`c${i}`, fresh())) }),
  )
  assert.equal((await v.rows(ns, 'Deployment', 'fits')).length, 64)
  assert.equal((await v.rows(ns, 'Deployment', 'over')).length, 64)
})

// ---- whose container it is

check('images: the workload of a bare pod is the pod itself', async () => {
  const ns = unique('bare')
  const d = fresh()
  const p = await v.post(pod({ ns, kind: null, containers: [container('app', d)] }))
  assert.equal(only(await v.rows(ns, 'Pod', p.pod_name)).digest, d)
  const use = await stored(d)
  assert.deepEqual([use.workloadKind, use.workloadName], ['Pod', p.pod_name])
})

check('images: a pod without a namespace, a blank pod and a refused one write nothing', async () => {
  const p = (over, d) => pod({ ns: unique('nothing'), ...over, containers: [container('app', d)] })
  for (const [over, status] of [
    [{ pod_namespace: null }, 200],
    [{ pod_namespace: undefined }, 200],
    [{ pod_name: '  ' }, 200],
    [{ node_name: undefined }, 400],
    [{ is_dead: 'no' }, 400],
  ]) {
    const d = fresh()
    ok(await v.agent.post('/pod/spec', p(over, d)), status)
    notFound(await v.image(d), JSON.stringify(over))
  }
})

check('images: replicas of a workload share a row, workloads and containers do not', async () => {
  const ns = unique('shared')
  const d = fresh()
  const replica = (over) => pod({ ns, containers: [container('app', d)], ...over })
  await v.post(
    replica(),
    replica(),
    replica({ workload: 'api' }),
    replica({ kind: 'StatefulSet' }),
    replica({ containers: [container('side', d)] }),
    replica({ ns: `${ns}-too` }),
  )
  const image = ok(await v.image(d)).json
  assert.deepEqual(
    image.workloads.map((w) => [w.namespace, w.workloadKind, w.workloadName, w.containerName].join(' ')),
    [
      `${ns} Deployment api app`,
      `${ns} Deployment web app`,
      `${ns} Deployment web side`,
      `${ns} StatefulSet web app`,
      `${ns}-too Deployment web app`,
    ],
  )
  assert.equal(only((await v.images({ namespace: `${ns}-too` })).items).digest, d)
  assert.deepEqual((await v.rows(ns)).map((r) => r.container).sort(), ['app', 'side'])
})

// ---- what a later post changes

check(
  'images: of an image seen again the repository is only filled in, the tags grow, the kind only rises',
  async () => {
    const d = fresh()
    const seen = async (over) => {
      await v.post(
        pod({
          ns: unique('again'),
          containers: [container('app', d, { image: `registry.test/team/app@${d}`, ...over })],
        }),
      )
      const i = ok(await v.image(d)).json
      return [i.repository, i.tags, i.digestKind]
    }
    assert.deepEqual(await seen({ repository: 'r'.repeat(600), tag: undefined, digest_kind: 'pinned' }), [
      null,
      [],
      'pinned',
    ])
    assert.deepEqual(await seen({ tag: 'v2', digest_kind: 'config' }), ['registry.test/team/app', ['v2'], 'config'])
    assert.deepEqual(await seen({ repository: 'mirror.test/app', tag: 'v1', digest_kind: 'pinned' }), [
      'registry.test/team/app',
      ['v2', 'v1'],
      'config',
    ])
    assert.deepEqual(await seen({ tag: 'v2', digest_kind: 'repo' }), ['registry.test/team/app', ['v2', 'v1'], 'repo'])
    assert.deepEqual(await seen({ repository: undefined, tag: undefined, digest_kind: 'config' }), [
      'registry.test/team/app',
      ['v2', 'v1'],
      'repo',
    ])
  },
)

check('images: a post that changes nothing writes nothing, whichever pod it comes from', async () => {
  const ns = unique('same')
  const d = fresh()
  const p = await v.post(
    pod({ ns, pod_security: POD_SECURITY, containers: [container('app', d, { security_context: CONTEXT })] }),
  )
  const read = async () => [ok(await v.image(d)).json, ok(await v.workload(ns)).json]
  const was = await read()
  await v.post(p, { ...p, pod_name: `${p.pod_name}-other` }, { ...p, containers: undefined, pod_security: undefined })
  assert.deepEqual(await read(), was)
})

const CHANGES = [
  ['kind', { kind: 'init' }, {}, (r) => r.kind, 'init'],
  ['image', { image: 'registry.test/team/app:v1-slim' }, {}, (r) => r.imageRef, 'registry.test/team/app:v1-slim'],
  [
    'security_context',
    { security_context: { ...CONTEXT, privileged: true } },
    {},
    (r) => r.securityContext.privileged,
    true,
  ],
  ['pod_security', {}, { pod_security: { ...POD_SECURITY, hostPID: false } }, (r) => r.podSecurity.hostPID, false],
  ['state', { state: 'terminated' }, {}, (r) => r.state, 'terminated'],
  ['state_reason', { state_reason: 'CrashLoopBackOff' }, {}, (r) => r.stateReason, 'CrashLoopBackOff'],
]
check('images: a changed kind, reference, context, state or reason rewrites the row', async () => {
  for (const [what, over, podOver, value, want] of CHANGES) {
    const ns = unique('changed')
    const d = fresh()
    const base = { state: 'waiting', state_reason: 'ImagePullBackOff', security_context: CONTEXT }
    const p = await v.post(pod({ ns, pod_security: POD_SECURITY, containers: [container('app', d, base)] }))
    const was = only(await v.rows(ns))
    assert.notDeepEqual(value(was), want, what)
    await v.post({
      ...p,
      pod_name: `${p.pod_name}-next`,
      ...podOver,
      containers: [container('app', d, { ...base, ...over })],
    })
    const is = only(await v.rows(ns))
    assert.deepEqual([value(is), is.lastPodName, is.firstSeen], [want, `${p.pod_name}-next`, was.firstSeen], what)
    assert.ok(micros(is.lastSeen) > micros(was.lastSeen), `${what}: lastSeen moves`)
  }
})

check('images: a pod that moves on to another digest no longer names the old row', async () => {
  const ns = unique('rollout')
  const [old, now, side] = [fresh(), fresh(), fresh()]
  const p = await v.post(pod({ ns, containers: [container('app', old), container('side', side)] }))
  await v.post({ ...p, containers: [container('app', now), container('side', side)] })
  assert.deepEqual(named(await v.rows(ns)), {
    [`app ${old}`]: null,
    [`app ${now}`]: p.pod_name,
    [`side ${side}`]: p.pod_name,
  })
  const app = ok(await v.workload(ns)).json.containers.find((c) => c.containerName === 'app')
  assert.deepEqual(
    [app.mixedDigests, app.digests.map((e) => e.digest).sort(), app.previousDigests],
    [true, [old, now].sort(), []],
    'both were seen within the window',
  )
})

check('images: two replicas on different digests are mixed digests, each naming its pod', async () => {
  const ns = unique('mixed')
  const [one, two] = [fresh(), fresh()]
  const p = await v.post(pod({ ns, containers: [container('app', one)] }))
  assert.equal(ok(await v.workload(ns)).json.containers[0].mixedDigests, false)
  const q = await v.post(pod({ ns, containers: [container('app', two)] }))
  const c = only(ok(await v.workload(ns)).json.containers, 'container')
  assert.equal(c.mixedDigests, true)
  assert.deepEqual(Object.fromEntries(c.digests.map((e) => [e.digest, e.lastPodName])), {
    [one]: p.pod_name,
    [two]: q.pod_name,
  })
})

check('images: a container that is still pulling takes its pod off the rows and creates none', async () => {
  const ns = unique('pulling')
  const [mine, others] = [fresh(), fresh()]
  const p = await v.post(pod({ ns, containers: [container('app', mine), container('side', mine)] }))
  const q = await v.post(pod({ ns, containers: [container('app', others)] }))
  const pulling = (name) =>
    container(name, undefined, {
      digest: undefined,
      digest_kind: undefined,
      image_id: undefined,
      tag: 'v2',
      image: 'registry.test/team/app:v2',
      state: 'waiting',
      state_reason: 'ContainerCreating',
    })
  await v.post({ ...p, containers: [pulling('app'), container('side', mine)] })
  assert.deepEqual(named(await v.rows(ns)), {
    [`app ${mine}`]: null,
    [`app ${others}`]: q.pod_name,
    [`side ${mine}`]: p.pod_name,
  })
  await v.post(pod({ ns, workload: 'new', containers: [pulling('app')] }))
  notFound(await v.workload(ns, 'Deployment', 'new'))
})

// ---- reads

check('images: the workloads of an image are in order, the running first', async () => {
  const ns = unique('order')
  const d = fresh()
  const uses = []
  for (const space of [`${ns}b`, `${ns}a`])
    for (const kind of ['StatefulSet', 'DaemonSet'])
      for (const workload of ['web', 'api'])
        for (const name of ['two', 'one']) uses.push([uses.length % 3 === 0, space, kind, workload, name])
  for (const [live, space, kind, workload, name] of uses)
    await v.post(
      pod({ ns: space, kind, workload, containers: [container(name, d, { state: live ? 'running' : 'terminated' })] }),
    )
  const key = (u) => [u[0] ? 0 : 1, ...u.slice(1)].join(' ')
  assert.deepEqual(
    ok(await v.image(d)).json.workloads.map((w) => [
      w.running,
      w.namespace,
      w.workloadKind,
      w.workloadName,
      w.containerName,
    ]),
    uses.sort((x, y) => (key(x) < key(y) ? -1 : 1)),
  )
})

check('images: the list is in the order of the digests and paged by the last one', async () => {
  const ns = unique('paged')
  const digests = [...Array.from({ length: 6 }, fresh), digest512(ns)].sort()
  await v.post(pod({ ns, containers: digests.map((d, i) => container(`c${(i * 5) % 7}`, d)) }))
  const pages = []
  for (let after; ; ) {
    const page = await v.images({ namespace: ns, limit: 3, after })
    pages.push(page.items.map((i) => i.digest))
    if (page.nextAfter === null) break
    assert.equal(page.nextAfter, pages.at(-1).at(-1))
    assert.ok(pages.length < 4, 'the list ends')
    after = page.nextAfter
  }
  assert.deepEqual(pages.flat(), digests)
  assert.deepEqual(
    pages.slice(0, 2).map((p) => p.length),
    [3, 3],
  )
  assert.ok(digests.at(-1).startsWith('sha512:'))
})

check('images: a page has 100 images unless limit says otherwise', async () => {
  const ns = unique('default')
  for (const workload of ['one', 'two'])
    await v.post(pod({ ns, workload, containers: Array.from({ length: 64 }, (_, i) => container(`c${i}`, fresh())) }))
  const first = await v.images({ namespace: ns })
  assert.equal(first.items.length, 100)
  assert.equal((await v.images({ namespace: ns, after: first.nextAfter })).items.length, 28)
  assert.equal((await v.images({ namespace: ns, limit: 120 })).items.length, 120)
})

check('images: the list is filtered by namespace and repository', async () => {
  const [ns, other] = [unique('filter'), unique('filter')]
  const [r, s] = [`registry.test/${unique('repo')}`, `registry.test/${unique('depot')}`]
  const [a, x, y] = [fresh(), fresh(), fresh()]
  await v.post(
    pod({ ns, containers: [container('a', a, { repository: r }), container('x', x, { repository: s })] }),
    pod({ ns: other, containers: [container('y', y, { repository: r })] }),
  )
  const found = async (params) => {
    const { items, nextAfter } = await v.images(params)
    assert.equal(nextAfter, null)
    return items.map((i) => i.digest)
  }
  assert.deepEqual(await found({ namespace: ns }), [a, x].sort())
  assert.deepEqual(await found({ repository: r }), [a, y].sort())
  assert.deepEqual(await found({ repository: r, namespace: other }), [y])
  assert.deepEqual(await found({ repository: s, namespace: other }), [])
  assert.deepEqual(await found({ namespace: unique('nowhere') }), [])
})

check('images: runningContainers counts the running containers of all workloads', async () => {
  const ns = unique('count')
  const d = fresh()
  const run = (workload, name, state) => v.post(pod({ ns, workload, containers: [container(name, d, { state })] }))
  await run('web', 'app', 'running')
  await run('web', 'app', 'running')
  await run('web', 'side', 'running')
  await run('api', 'app', 'running')
  await run('api', 'side', 'terminated')
  assert.equal(only((await v.images({ namespace: ns })).items).runningContainers, 3)
})

check('images: a bad limit and an after that is no digest are 400', async () => {
  for (const params of [
    { limit: 'abc' },
    { after: 'web' },
    { after: 'sha256:abc' },
    { after: fresh().toUpperCase() },
    { after: `${fresh()}0` },
  ])
    refused(await v.list(params), 400, JSON.stringify(params))
})

check('images: a bad digest is 400, an unknown digest or workload is 404', async () => {
  const hex = digest('known').slice(7)
  for (const bad of [
    'latest',
    'sha256:abc',
    `sha256:${hex.toUpperCase().replace(/^./, 'A')}`,
    `sha256:${hex}0`,
    `sha512:${hex}`,
    `md5:${hex}`,
    hex,
  ])
    refused(await v.image(bad), 400, bad)
  notFound(await v.image(fresh()))
  notFound(await v.image(digest512('unknown')))
  notFound(await v.workload(unique('nowhere')))
  const ns = unique('somewhere')
  await v.post(pod({ ns, containers: [container('app', fresh())] }))
  for (const w of [
    [ns, 'StatefulSet', 'web'],
    [ns, 'Deployment', 'api'],
    [`${ns}x`, 'Deployment', 'web'],
  ])
    notFound(await v.workload(...w), w.join(' '))
})

check('images: the reads need the read scope, the inventory is written with ingest only', async () => {
  const ns = unique('scopes')
  const d = fresh()
  const p = pod({ ns, containers: [container('app', d)] })
  for (const [token, status] of [
    [undefined, 401],
    ['unknown-token-0123456789', 401],
    [tokens.read, 403],
    [tokens.supplychain, 403],
  ]) {
    ok(await b.post('/pod/spec', p, { bearer: token }), status)
    notFound(await v.image(d), `${status}`)
  }
  await v.post(p)
  for (const path of ['/images', `/images/${d}`, `/workloads/${ns}/Deployment/web/containers`]) {
    ok(await b.get(path), 401)
    ok(await b.get(path, { bearer: 'unknown-token-0123456789' }), 401)
    for (const token of Object.values(tokens)) ok(await b.get(path, { bearer: token }))
  }
})

// ---- running, and the passing of time

check('images: a container seen within the window is running though its pod is dead', async () => {
  const ns = unique('dead')
  const d = fresh()
  const p = await v.post(pod({ ns, containers: [container('app', d)] }))
  assert.equal(ok(await v.agent.post('/pod/mark_dead', { pod_name: p.pod_name })).json, 1)
  assert.equal((await stored(d)).running, true)
  assert.equal(only((await v.images({ namespace: ns })).items).runningContainers, 1)
})

check('images: past the window a container is running while a pod that it names lives', async (c) => {
  const t = await clocked(c, { IMAGE_INVENTORY_RUNNING_WINDOW_SECS: '360' })
  if (!t) return
  const ns = unique('window')
  const [old, now] = [fresh(), fresh()]
  const p = await t.post(pod({ ns, containers: [container('app', old)] }))
  await t.post({ ...p, containers: [container('app', now)] })
  const state = async () => {
    const w = ok(await t.workload(ns)).json
    assert.equal(w.runningWindowSeconds, 360)
    const [entry] = w.containers
    const found = {
      digests: entry.digests.map((e) => e.digest).sort(),
      previous: entry.previousDigests.map((e) => e.digest).sort(),
      mixed: entry.mixedDigests,
    }
    const items = (await t.images({ namespace: ns })).items
    for (const d of [old, now]) {
      const live = found.digests.includes(d)
      assert.equal(ok(await t.image(d)).json.workloads[0].running, live)
      assert.equal(items.find((i) => i.digest === d).runningContainers, live ? 1 : 0)
    }
    return found
  }
  await t.later(320)
  assert.deepEqual(await state(), { digests: [old, now].sort(), previous: [], mixed: true }, '320 s later')
  await t.later(60)
  assert.deepEqual(
    await state(),
    { digests: [now], previous: [old], mixed: false },
    '380 s later only the one whose pod lives',
  )
  ok(await t.agent.post('/pod/mark_dead', { pod_name: p.pod_name }))
  assert.deepEqual(await state(), { digests: [], previous: [old, now].sort(), mixed: false }, 'the pod is dead')
  await t.post({ ...p, containers: undefined })
  assert.deepEqual(await state(), { digests: [now], previous: [old], mixed: false }, 'the pod lives again')
  await t.stop()
})

check('images: an unchanged container and image are written again after 300 seconds, not before', async (c) => {
  const t = await clocked(c)
  if (!t) return
  const ns = unique('throttle')
  const d = fresh()
  const p = await t.post(pod({ ns, containers: [container('app', d)] }))
  const q = { ...p, pod_name: `${p.pod_name}-other` }
  const read = async () => ({ image: ok(await t.image(d)).json, row: only(await t.rows(ns)) })
  await t.later(270)
  const was = await read()
  await t.post(q)
  assert.deepEqual(await read(), was, '270 s later')
  await t.later(40)
  await t.post(q)
  const { image, row } = await read()
  recent(image.lastSeen, 'lastSeen of the image')
  recent(row.lastSeen, 'lastSeen of the row')
  for (const [is, first] of [
    [image, was.image.firstSeen],
    [row, was.row.firstSeen],
  ])
    assert.equal(micros(first) - micros(is.firstSeen), 40_000_000n, 'firstSeen stays')
  assert.equal(row.lastPodName, q.pod_name)
  await t.stop()
})
