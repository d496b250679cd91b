/** The acts of the story: the state until five days ago, and the events since. */
import { type Pod, uidOf, type Workload } from './cluster.ts'
import { containerOf, labelsOf, podPost, servicePost } from './pods.ts'
import { computeKey, denialOf, minuteOf, putResource, syscallsOf } from './runtime.ts'
import type { Site } from './site.ts'
import { ADDRESSES, IMAGES, LOG4J, LOG4SHELL, SILENT_NODES, type Story, XZ, XZ_BACKDOOR } from './story.ts'
import {
  heartbeat,
  packagesOf,
  postReport,
  postSbom,
  runtimeKey,
  signedResult,
  unsignedResult,
} from './supply-chain.ts'

const HOUR = 3_600
const DAY = 24 * HOUR
const DEPLOYED_DAYS = 5
const RUNNING_DAYS = 29
const MIB = 2 ** 20

export const keyOf = ({ namespace, kind, name }: Workload) => ({ namespace, kind, name })
const storyService = (n: number) => `10.96.200.${10 + n}`

/** Checkout before: another image, and confined as it should be. */
export const earlierStory = (story: Story): Story => ({
  ...story,
  checkout: { ...story.checkout, image: IMAGES.earlierCheckout },
})

/** Containers whose settings differ from those of all others. */
function containersOf(workload: Workload): object[] {
  if (workload.name === 'node-agent')
    return [
      containerOf(workload, { security_context: { privileged: true, runAsUser: 0, capabilitiesAdd: ['SYS_ADMIN'] } }),
    ]
  if (workload.name === 'card-vault')
    return [containerOf(workload, { security_context: { runAsUser: 0, allowPrivilegeEscalation: true } })]
  if (workload.image === IMAGES.checkout)
    return [containerOf(workload, { security_context: { runAsNonRoot: true, readOnlyRootFilesystem: false } })]
  return [containerOf(workload)]
}

export async function postStoryPods(site: Site, story: Story): Promise<void> {
  const workloads = Object.values(story)
  await site.postAll(
    '/pod/spec',
    workloads.flatMap((workload) =>
      workload.pods.map((pod) =>
        podPost(site, workload, pod, {
          labels: { ...labelsOf(workload), 'acme.example/on-call': `${workload.namespace}-team` },
          containers: containersOf(workload),
          silentSecs: SILENT_NODES.get(pod.node) ?? 0,
          // Before their first flow, so that the flow is attributed to them.
          more: { started_at: site.ago(RUNNING_DAYS * DAY) },
        }),
      ),
    ),
  )
  const served = workloads.filter(({ role }) => role.port !== null)
  await site.postAll(
    '/svc/spec',
    served.map((workload, n) => servicePost(site, workload, storyService(n))),
  )
}

interface FlowMore {
  readonly to?: Workload
  readonly secs: number
  readonly port?: string
  readonly more?: object
}

/** A flow between the nth pods of two workloads, or with an address, a given time ago. */
const flowOf = (
  site: Site,
  from: Pod,
  of: Workload,
  type: 'EGRESS' | 'INGRESS',
  ip: string,
  port: string,
  secs: number,
  more: object = {},
) => ({
  uuid: uidOf(`${from.name} ${type} ${ip}:${port} ${secs}`),
  ...{ pod_name: from.name, pod_namespace: of.namespace, pod_ip: from.ip, traffic_type: type },
  ...{ pod_port: type === 'INGRESS' ? port : '0', traffic_in_out_ip: ip },
  ...{ traffic_in_out_port: type === 'EGRESS' ? port : '0', ip_protocol: 'TCP', decision: 'ALLOW' },
  ...{ time_stamp: site.ago(secs), ...more },
})

function between(site: Site, from: Workload, { to, secs, port, more }: FlowMore): object[] {
  return from.pods.flatMap((source, i) => {
    const target = to!.pods[i % to!.pods.length]!
    const at = secs - i * 97
    const open = port ?? to!.role.port!
    return [
      flowOf(site, source, from, 'EGRESS', target.ip, open, at, more),
      ...(more ? [] : [flowOf(site, target, to!, 'INGRESS', source.ip, open, at)]),
    ]
  })
}

/** The usual flows of the story, for weeks. */
export async function postUsualFlows(site: Site, s: Story): Promise<void> {
  const days = (n: number) => n * DAY
  const usual = [
    ...between(site, s.ingress, { to: s.storefront, secs: days(27) }),
    ...between(site, s.ingress, { to: s.checkout, secs: days(27) }),
    ...between(site, s.storefront, { to: s.checkout, secs: days(26) }),
    ...between(site, s.storefront, { to: s.recommender, secs: days(25) }),
    ...between(site, s.checkout, { to: s.ordersDb, secs: days(26) }),
    ...between(site, s.checkout, { to: s.ledger, secs: days(24) }),
    ...between(site, s.ledger, { to: s.ledgerDb, secs: days(24) }),
    ...between(site, s.ledger, { to: s.cardVault, secs: days(23) }),
    ...between(site, s.ledger, { to: s.fxRates, secs: days(22) }),
    ...between(site, s.grafana, { to: s.prometheus, secs: days(21) }),
    ...[s.checkout, s.storefront, s.ledger, s.cardVault].flatMap((to) =>
      between(site, s.prometheus, { to, secs: days(20) }),
    ),
    ...s.ingress.pods.map((pod, i) =>
      flowOf(site, pod, s.ingress, 'INGRESS', ADDRESSES.visitor, '8443', days(19) - i * 60),
    ),
    ...s.cardVault.pods.map((pod, i) =>
      flowOf(site, pod, s.cardVault, 'EGRESS', ADDRESSES.cardNetwork, '443', days(18) - i * 60),
    ),
    ...[s.checkout, s.storefront, s.ledger].flatMap((from) =>
      from.pods.map((pod, i) =>
        flowOf(site, pod, from, 'EGRESS', s.coredns.pods[i % 2]!.ip, '53', days(20) - i, { ip_protocol: 'UDP' }),
      ),
    ),
  ]
  await site.post('/pod/traffic/batch', usual)
}

/** New flows: the internet reaches checkout, recommender calls out, the ledger is cut off, one address is unknown. */
export async function postNewFlows(site: Site, s: Story): Promise<void> {
  const drop = { decision: 'DROP', drop_cause: 'NO_RESPONSE', syn_retries: 4 }
  const fresh = [
    ...s.checkout.pods.map((pod, i) =>
      flowOf(site, pod, s.checkout, 'INGRESS', ADDRESSES.visitor, '8080', 30 * HOUR - i * 1_800),
    ),
    ...s.checkout.pods.map((pod, i) =>
      flowOf(site, pod, s.checkout, 'EGRESS', s.fxRates.pods[0]!.ip, '8080', 20 * HOUR - i * 600),
    ),
    ...s.recommender.pods.map((pod, i) =>
      flowOf(site, pod, s.recommender, 'EGRESS', ADDRESSES.newOutside, '443', 7 * HOUR - i * 300),
    ),
    ...between(site, s.recommender, { to: s.ledger, secs: 6 * HOUR }),
    ...between(site, s.ledger, { to: s.ordersDb, secs: 5 * HOUR, more: drop }),
    ...s.ledger.pods.map((pod, i) =>
      flowOf(site, pod, s.ledger, 'EGRESS', ADDRESSES.unresolved, '5432', 4 * HOUR - i * 120, drop),
    ),
    ...s.fxRates.pods.map((pod) => flowOf(site, pod, s.fxRates, 'EGRESS', ADDRESSES.unresolved, '9092', 9 * HOUR)),
    ...between(site, s.ingress, { to: s.checkout, secs: HOUR, port: '8081' }),
  ]
  await site.post('/pod/traffic/batch', fresh)
}

/** Syscalls of the story. `more` are those that checkout and the ledger use since the deployment. */
export async function postStorySyscalls(site: Site, story: Story, more: readonly string[]): Promise<void> {
  const changed = [story.checkout.name, story.ledger.name]
  const entries = Object.values(story).flatMap((workload) =>
    workload.pods.map((pod) => ({
      ...{ pod_name: pod.name, pod_namespace: workload.namespace, arch: 'x86_64', time_stamp: site.ago(0) },
      syscalls: [...syscallsOf(workload.name), ...(changed.includes(workload.name) ? more : [])],
    })),
  )
  await site.post('/pod/syscalls', entries)
}

/** Profiles of checkout, storefront and the ledger. The profile of the ledger lacks syscalls that it uses now. */
export async function putStoryProfiles(site: Site, story: Story): Promise<Workload[]> {
  const confined = [story.checkout, story.storefront, story.ledger]
  for (const workload of confined) await putResource(site, workload, syscallsOf(workload.name))
  return confined
}

/** The denials of the ledger and of checkout, by node. */
export function storyDenials(site: Site, { ledger, checkout }: Story): Map<string, object[]> {
  const denials = new Map<string, object[]>()
  const add = (workload: Workload, pod: Pod, more: object) =>
    denials.set(pod.node, [...(denials.get(pod.node) ?? []), denialOf(site, workload, pod, more)])
  const recent = { firstSeen: site.zonedAgo(11 * HOUR), lastSeen: site.zonedAgo(HOUR / 3) }
  for (const pod of ledger.pods) {
    add(ledger, pod, { syscall: 'ptrace', syscallNr: 101, arch: 'x86_64', count: 37, ...recent })
    add(ledger, pod, { syscall: 'io_uring_setup', syscallNr: 425, arch: 'x86_64', count: 4, ...recent })
  }
  add(checkout, checkout.pods[0]!, {
    ...{ syscall: 'bpf', syscallNr: 321, arch: 'x86_64', action: 'SCMP_ACT_LOG', count: 2, ...recent },
  })
  return denials
}

/** Executed files. Recommender runs one that no image has; the origin of fx-rates' files is not known. */
export async function postStoryFiles(site: Site, story: Story, isEarlier: boolean): Promise<void> {
  const { checkout, cardVault, recommender, storefront, ledger, fxRates } = story
  const since = isEarlier ? 25 * DAY : DEPLOYED_DAYS * DAY
  const file = (workload: Workload, path: string, kind: string, more: object = {}) => ({
    ...{ ...runtimeKey(workload, workload.pods[0]!.name), kind, path, path_complete: true, source: 'ebpf' },
    ...{ origin: 'image', first_seen: site.ago(since), last_seen: site.ago(isEarlier ? DEPLOYED_DAYS * DAY : 600) },
    ...more,
  })
  const stack = (workload: Workload) =>
    packagesOf(workload.image).flatMap(({ files }) =>
      files.filter((path) => /\.(so[.\d]*|jar)$/.test(path)).map((path) => file(workload, `/${path}`, 'lib')),
    )
  const recently = (hours: number) => ({ first_seen: site.ago(hours * HOUR), last_seen: site.ago(300) })
  await site.post('/runtime/executables', [
    ...[checkout, storefront, ledger].flatMap(stack),
    file(checkout, '/opt/java/openjdk/bin/java', 'exec'),
    file(checkout, `/${LOG4J.files[0]}`, 'lib'),
    ...(isEarlier
      ? []
      : [
          file(checkout, '/usr/bin/curl', 'exec', recently(8)),
          file(cardVault, '/usr/bin/xz', 'exec', recently(30)),
          file(recommender, '/usr/local/bin/python3.11', 'exec'),
          file(recommender, '/tmp/.x/kworkerds', 'exec', { origin: 'writableLayer', ...recently(7) }),
          file(recommender, 'memfd:loader', 'exec', { origin: 'memfd', ...recently(7) }),
          file(fxRates, 'bin/fx-rates', 'exec', { path_complete: false }),
        ]),
  ])
  if (isEarlier) return
  const beats = Object.values(story)
    .filter(({ name }) => name !== 'node-agent')
    .flatMap((workload) => workload.pods.map((_, i) => heartbeat(site, workload, i, storyGap(site, workload))))
  await site.post('/runtime/coverage', beats)
  const check = (workload: Workload, capability: string, granted: boolean, count: number) => ({
    ...{ ...runtimeKey(workload, workload.pods[0]!.name), capability, granted, count },
    ...{ first_seen: site.ago(6 * DAY), last_seen: site.ago(HOUR) },
  })
  await site.post('/runtime/capabilities', [
    check(story.ingress, 'NET_BIND_SERVICE', true, 40),
    check(story.ledger, 'SYS_PTRACE', false, 37),
    check(story.cardVault, 'DAC_OVERRIDE', true, 9),
    check(story.checkout, 'NET_RAW', false, 2),
  ])
}

function storyGap(site: Site, { name }: Workload): object {
  if (name === 'fx-rates') return { events_dropped: 212, lib_probe: false, mode: 'exec' }
  return name === 'grafana' ? { start_mode: 'backfill', probe_attached_at: site.ago(2 * HOUR) } : {}
}

/** Reports, SBOMs and signatures. fx-rates has no SBOM, and card-vault is not signed. */
export async function postStoryImages(site: Site, isEarlier: boolean): Promise<void> {
  for (const [name, image] of Object.entries(IMAGES)) {
    if ((name === 'checkout') === isEarlier) continue
    const own = packagesOf(image)
    const isCheckout = name === 'checkout' || name === 'earlierCheckout'
    const packages = isCheckout ? [...own, LOG4J] : name === 'cardVault' ? [...own, XZ] : own
    const extra = isCheckout ? [LOG4SHELL] : name === 'cardVault' ? [XZ_BACKDOOR] : []
    // The newer image of checkout has fewer packages, so that the two differ.
    const kept = name === 'checkout' ? packages.filter(({ name: one }) => one !== 'perl-base') : packages
    await postReport(site, image, kept, extra)
    if (name !== 'fxRates') await postSbom(site, image, kept)
    const result = {
      cardVault: unsignedResult(site, image),
      earlierCheckout: signedResult(site, image),
      imageBuilder: unsignedResult(site, image, {
        ...{ verdict: 'invalid', reason: 'signature_mismatch' },
        signatures: [{ format: 'cosign-bundle', source: 'referrers', verified: false, error: 'signature_mismatch' }],
      }),
    }[name]
    await site.post(`/images/${image.digest}/attestation`, result ?? signedResult(site, image))
  }
}

/** Storefront waits for image-builder, which runs beside it. */
export function contention({ storefront, imageBuilder }: Story) {
  const victim = storefront.pods[0]!
  const culprit = imageBuilder.pods[0]!
  const ref = `${imageBuilder.namespace}/${culprit.name}/${imageBuilder.container}`
  const wait = { kind: 'pod', ref, container_uid: `${culprit.uid}/${imageBuilder.container}`, count: 700 }
  const blame = [
    { ...wait, wait_ns: 3_000_000_000 },
    { kind: 'kernel', ref: 'kworker', count: 20, wait_ns: 2_500_000 },
  ]
  const limits = { request_millis: 500, limit_millis: 1_000, nr_periods: 600, nr_throttled: 180 }
  const busy = { request_millis: 1_000, nr_periods: 600, nr_throttled: 0 }
  return {
    minute: new Map<string, object>([
      [
        victim.name,
        {
          cpu: { usage_millis: { avg: 420, max: 900, last: 430 }, ...limits, psi_some10: { avg: 38, max: 71 } },
          ...{ runq: { count: 9_000, p50_us: 400, p95_us: 18_000, p99_us: 31_000, max_us: 64_000 }, blame },
        },
      ],
      [culprit.name, { cpu: { usage_millis: { avg: 7_600, max: 8_400, last: 7_900 }, ...busy } }],
    ]),
    sample: new Map<string, object>([
      [victim.name, { cpu: { usage_usec: 2_100_000, ...limits, psi_some10: 38 }, blame }],
      [culprit.name, { cpu: { usage_usec: 38_000_000, ...busy } }],
    ]),
  }
}

const MINUTES_ALONE = 150
const ROWS: readonly { readonly rows: number; readonly secs: number; readonly before: number }[] = [
  { rows: MINUTES_ALONE, secs: 60, before: 10 * 60 },
  { rows: 260, secs: 300, before: 3 * HOUR },
  { rows: 280, secs: 1_800, before: DAY + HOUR },
]

/** Seven days of CPU and memory of the shop and the payments: by the minute, by five minutes, by half an hour. */
export async function postStoryHistory(site: Site, story: Story): Promise<void> {
  const shown = [story.checkout, story.storefront, story.recommender, story.ledger, story.imageBuilder]
  const containers = shown.flatMap((workload) => workload.pods.map((pod) => ({ workload, pod })))
  const byNode = Map.groupBy?.(containers, ({ pod }) => pod.node) ?? grouped(containers)
  const posts = ROWS.flatMap(({ rows, secs, before }) =>
    Array.from({ length: rows }, (_, i) => before + i * secs).flatMap((ago) =>
      [...byNode].map(([node, of]) => ({
        ...{ node, ts: site.zonedAgo(ago), resolution_secs: secs },
        containers: of.map(({ workload, pod }) => minuteOf(workload, pod, (ago / DAY) * 2 * Math.PI)),
      })),
    ),
  )
  await site.postAll('/pod/compute/history/batch', posts)
}

function grouped<T extends { pod: Pod }>(all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) groups.set(one.pod.node, [...(groups.get(one.pod.node) ?? []), one])
  return groups
}

/** An out-of-memory kill in the latest sample of a recommender pod. */
export const memoryShort = ({ recommender }: Story) =>
  [
    recommender.pods[0]!.name,
    { memory: { current: 500 * MIB, working_set: 498 * MIB, limit: 512 * MIB, oom_kill: 2, psi_some10: 22 } },
  ] as const

export const storyContainer = ({ storefront }: Story) => computeKey(storefront, storefront.pods[0]!)

/** One decision of each kind, and one from a vendor's VEX document. */
export async function decide(site: Site, { checkout, cardVault }: Story): Promise<void> {
  const put = (id: string, body: object) => site.send('PUT', `/vulnerabilities/${id}/decision`, body)
  const untilNextYear = `${new Date().getUTCFullYear() + 1}-03-31`
  await put('CVE-2023-45853', {
    ...{ scope: { type: 'all' }, decision: 'not_affected', justification: 'vulnerable_code_not_in_execute_path' },
    ...{ by: 'security-team', why: 'MiniZip is not built into the zlib of Debian.' },
  })
  await put('CVE-2019-8457', {
    ...{ scope: { type: 'namespace', namespace: 'payments' }, decision: 'accepted', until: untilNextYear },
    ...{ by: 'payments-team', why: 'No program here opens a database of Berkeley DB; we move to trixie in spring.' },
  })
  await put('CVE-2005-2541', {
    ...{ scope: { type: 'all' }, decision: 'will_not_fix', by: 'security-team' },
    why: 'Extracting archives as root is not something our containers do.',
  })
  await put(LOG4SHELL.id, {
    scope: { type: 'workload', namespace: checkout.namespace, kind: checkout.kind, name: checkout.name },
    ...{ decision: 'affected', by: 'shop-team', why: 'Upgrade to 2.17.1 is in review: SHOP-4711.' },
  })
  await put(XZ_BACKDOOR.id, {
    ...{ scope: { type: 'image', digest: cardVault.image.digest }, decision: 'under_investigation' },
    ...{ by: 'security-team', why: 'The image was built by hand from unstable; find out by whom.' },
  })
  await site.post('/vex', {
    ...{ '@context': 'https://openvex.dev/ns/v0.2.0', '@id': 'https://vex.debian.example/2026/0042' },
    ...{ author: 'security@debian.example', timestamp: site.zonedAgo(2 * DAY), version: 1 },
    statements: [
      {
        vulnerability: { name: 'CVE-2023-31484' },
        products: [{ '@id': 'pkg:deb/debian/perl-base@5.36.0-7' }],
        ...{ status: 'not_affected', justification: 'component_not_present' },
        impact_statement: 'perl-base ships without CPAN.pm.',
      },
    ],
  })
}

/** Verdicts of the policy evaluator on flows of the shop and of payments. */
export async function insertVerdicts(site: Site, { checkout, ledger, ordersDb }: Story): Promise<void> {
  await site.sql`
    insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, src_namespace, src_pod,
                               dst_namespace, dst_pod, dst_port, protocol, reason, observed_at, verdict)
    select md5(p.name), p.namespace, p.name, 'Egress', p.namespace, p.source, 'shop', ${ordersDb.pods[0]!.name}, 5432,
           'TCP', case when p.name = 'default-deny' then 'no rule allows it' else '' end,
           now() at time zone 'utc' - n * interval '41 minutes',
           case when p.name = 'default-deny' then 'WouldDeny' else 'Allow' end
    from generate_series(1, 300) n
    cross join lateral (values ('shop', 'checkout-to-db', ${checkout.pods[0]!.name}),
                               ('payments', 'default-deny', ${ledger.pods[0]!.name})) p(namespace, name, source)
    where n % 3 = 0 or p.name = 'checkout-to-db'`
}

/** Makes everything posted so far `days` older, in the times that the broker itself records. */
export async function age({ sql }: Site, days: number): Promise<void> {
  await sql`update image set first_seen = first_seen - make_interval(days => ${days})`
  await sql`update workload_container set first_seen = first_seen - make_interval(days => ${days})`
  await sql`
    update workload_syscalls_seen
    set first_seen = array(select t - make_interval(days => ${days}) from unnest(first_seen) t)`
}

/** Makes the currently stored profiles five days old. */
export async function ageProfiles({ sql }: Site): Promise<void> {
  const before = `interval '${DEPLOYED_DAYS} days'`
  await sql.unsafe(`update workload_profile_version set created_at = created_at - ${before}`)
  await sql.unsafe(`update workload_profile set computed_at = computed_at - ${before},
                                                last_changed_at = last_changed_at - ${before}`)
}

/** Ends the previous image of checkout five days ago, and starts the new one then. */
export async function ageDeployment({ sql }: Site): Promise<void> {
  const at = sql`now() at time zone 'utc' - make_interval(days => ${DEPLOYED_DAYS})`
  const [before, now] = [IMAGES.earlierCheckout.digest, IMAGES.checkout.digest]
  await sql`
    update workload_container set last_seen = ${at}, state = 'terminated', last_pod_name = null
    where image_digest = ${before}`
  await sql`update image set last_seen = ${at} where digest = ${before}`
  await sql`update image set first_seen = ${at} where digest = ${now}`
  await sql`update workload_container set first_seen = ${at} where image_digest = ${now}`
}
