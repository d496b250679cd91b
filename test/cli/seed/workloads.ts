import assert from 'node:assert/strict'
import { TOKENS } from '../../support/app.ts'
import { container, digestOf, replica } from '../../support/images.ts'
import type { SeededApp } from '../cluster.ts'

export const WEB = digestOf('web of the shop')
export const API = digestOf('api of the shop')

const HOUR_SECS = 3_600
const MIB = 2 ** 20
/** More than percentiles need. */
const MINUTES = 61

/** The pods of the shop with all that agents say of them, and what the broker makes of it. */
export async function seedWorkloads(app: SeededApp): Promise<void> {
  const send = async (method: string, path: string, body: unknown) => {
    const answer = await app.request(method, path, { body, token: TOKENS.BROKER_TOKEN_INGEST })
    assert.equal(answer.status, 200, answer.text)
  }
  const post = (path: string, body: unknown) => send('POST', path, body)
  // One time for all, so that minutes are a minute apart.
  const now = Date.now()
  const ago = (secs: number) => new Date(now - secs * 1_000).toISOString()
  const naive = (secs: number) => ago(secs).slice(0, -1)

  for (const [name, pod_name, digest, pod_ip, capture_level] of [
    ['web', 'web-1', WEB, '10.1.0.1', 'full'],
    ['api', 'api-1', API, '10.1.0.2', 'high'],
  ] as const) {
    const repository = `registry.test/shop/${name}`
    const containers = [container(name, digest, { image: `${repository}:v1`, repository, tag: 'v1' })]
    const fields = { pod_name, pod_ip, workload_name: name, capture_level, time_stamp: naive(0) }
    await post('/pod/spec', replica('shop', containers, fields))
  }
  await post('/node/facts', {
    ...{ node_name: 'node-1', provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'ipv4' },
    ...{ node_os: 'bottlerocket', policy_enforcement: 'enforced' },
  })

  const syscallsOf = (pod_name: string, syscalls: string[]) => ({
    ...{ pod_name, pod_namespace: 'shop', syscalls, arch: 'x86_64', time_stamp: naive(0) },
  })
  await post('/pod/syscalls', [
    syscallsOf('web-1', ['read', 'write', 'exit_group', 'futex']),
    syscallsOf('api-1', ['read', 'write']),
  ])
  await send('PUT', '/seccomp/crs/shop/deployment-web', {
    spec: {
      ...{ defaultAction: 'SCMP_ACT_ERRNO', architectures: ['SCMP_ARCH_X86_64'] },
      syscalls: [{ names: ['read', 'write', 'exit_group'], action: 'SCMP_ACT_ALLOW' }],
      workloadRef: { kind: 'Deployment', name: 'web' },
    },
  })
  const denial = { podUid: 'uid-web-1', podName: 'web-1', podNamespace: 'shop', action: 'SCMP_ACT_ERRNO' }
  await post('/seccomp/denials', {
    ...{ node: 'node-1', capturing: true, intervalSeconds: 60 },
    denials: [{ ...denial, syscall: 'ptrace', count: 3, firstSeen: ago(2 * HOUR_SECS), lastSeen: ago(HOUR_SECS) }],
  })

  const web = containerOf('web', WEB)
  const api = containerOf('api', API)
  const file = (of: object, path: string, origin: string, more: object = {}) => ({
    ...{ ...of, path, origin, kind: 'exec', path_complete: true, source: 'ebpf' },
    ...{ first_seen: naive(2 * HOUR_SECS), last_seen: naive(60), ...more },
  })
  await post('/runtime/executables', [
    file(web, '/usr/sbin/nginx', 'image'),
    file(web, '/usr/lib/libssl.so.3', 'image', { kind: 'lib' }),
    file(web, '/tmp/.x/miner', 'writableLayer', { first_seen: naive(HOUR_SECS) }),
    file(api, 'memfd:loader', 'memfd'),
  ])
  const heartbeat = (of: object, container_id: string, more: object = {}) => ({
    ...{ ...of, container_id, node_name: 'node-1', mode: 'full', exec_probe: true, lib_probe: true },
    ...{
      start_mode: 'start',
      tracking_since: naive(48 * HOUR_SECS),
      heartbeat_at: naive(1),
      heartbeat_secs: 300,
      ...more,
    },
  })
  await post('/runtime/coverage', [heartbeat(web, 'aaaa1111'), heartbeat(api, 'bbbb2222', { events_dropped: 3 })])
  await post('/runtime/capabilities', [
    {
      ...{ ...web, capability: 'NET_BIND_SERVICE', granted: true, count: 3 },
      ...{ first_seen: naive(2 * HOUR_SECS), last_seen: naive(60) },
    },
  ])

  await post('/pod/compute/batch', {
    ...{ node: 'node-1', ts: ago(0), interval_ms: 5_000, contention_loaded: true },
    node_pressure: { cpu_some10: 12.5, cpu_full10: 2, mem_some10: 0.5, mem_full10: 0 },
    node_capacity: { cpu_cores: 4, memory_bytes: 16_384 * MIB },
    containers: [
      { ...computeOf('web'), ...sampleOf(250, 180, { nr_periods: 50, nr_throttled: 5, psi_some10: 35 }) },
      { ...computeOf('api'), ...sampleOf(1_600, 200) },
    ],
  })
  // A node without pods, whose agent cannot sample containers.
  await post('/pod/compute/batch', {
    ...{ node: 'node-3', ts: ago(0), interval_ms: 5_000, compute_supported: false, containers: [] },
    node_capacity: { cpu_cores: 2, memory_bytes: 8_192 * MIB },
  })
  for (let minute = 0; minute < MINUTES; minute++)
    await post('/pod/compute/history/batch', {
      ...{ node: 'node-1', ts: ago(20 + minute * 60) },
      containers: [
        { ...computeOf('web'), ...minuteOf(120 + minute, 180), ...(minute < 2 && CONTENDED) },
        { ...computeOf('api'), ...minuteOf(1_600, 200) },
      ],
    })

  await app.sql`
    insert into job_run (job, finished_at, duration_ms, rows)
    values ('flow-edges', now() at time zone 'utc', 12, 8),
           ('traffic-retention', now() at time zone 'utc' - interval '3 days', 40, 0)`
}

const containerOf = (name: string, image_digest: string) => ({
  ...{ pod_namespace: 'shop', pod_name: `${name}-1`, workload_kind: 'Deployment', workload_name: name },
  ...{ container_name: name, image_digest },
})

const computeOf = (name: string) => ({
  ...{ container_uid: `uid-${name}-1/${name}`, pod_uid: `uid-${name}-1`, pod_name: `${name}-1` },
  ...{ namespace: 'shop', container: name },
})

const sampleOf = (millis: number, mebi: number, cpu: object = {}) => ({
  cpu: { usage_usec: millis * 5_000, request_millis: 500, limit_millis: 2_000, ...cpu },
  memory: { current: (mebi + 20) * MIB, working_set: mebi * MIB, request: 128 * MIB, limit: 192 * MIB },
})

const minuteOf = (millis: number, mebi: number) => ({
  cpu: {
    ...{ usage_millis: { avg: millis, max: millis * 2 }, request_millis: 500, limit_millis: 2_000 },
    ...{ nr_periods: 600, nr_throttled: 6 },
  },
  memory: { working_set: { avg: mebi * MIB, max: mebi * MIB }, request: 128 * MIB, limit: 192 * MIB },
})

/** The newest minutes of `web`, which waits for `api` and a little for the kernel. */
const CONTENDED = {
  cpu: {
    ...{ usage_millis: { avg: 120, max: 240 }, request_millis: 500, limit_millis: 2_000 },
    ...{ nr_periods: 600, nr_throttled: 6, psi_some10: { avg: 35, max: 60 } },
  },
  runq: { count: 900, p99_us: 30_000, max_us: 60_000 },
  blame: [
    { kind: 'pod', ref: 'shop/api-1/api', container_uid: 'uid-api-1/api', count: 700, wait_ns: 3_000_000_000 },
    { kind: 'kernel', ref: 'kworker', count: 20, wait_ns: 2_500_000 },
  ],
}
