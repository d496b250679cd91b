import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { runtimeRetention } from '../../jobs/runtime-retention.ts'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { type Instance, judge, type Pod, type Scene } from '../runtime/coverage-model.ts'
import {
  answering,
  type Cluster,
  type Container,
  canonical,
  componentOf,
  type Detail,
  exposureOf,
  type FindingRow,
  findingsOf,
  hasInterpreted,
  hitsOf,
  inUseOf,
  ownersOf,
  type PackageRow,
  type Payload,
  type Peer,
  SEVERITIES,
  STATES,
  type State,
  strongest,
  summaryOf,
  TIERS,
  type Via,
  type Workload,
} from '../supply-chain/in-use-model.ts'
import {
  type ClusterStory,
  cluster,
  type FlowStory,
  type PayloadStory,
  type Phase,
  pathCase,
  WATCHES,
  type WorkloadStory,
} from '../supply-chain/in-use-scenes.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'
import { countEdges, flowOf, podOf, serviceOf } from '../support/policy-cluster.ts'

type App = Awaited<ReturnType<typeof startApp>>
// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any
type Fields = Record<string, unknown>

const CLUSTERS = depth(3, 1_000)
const SECONDS_OF_DAY = 86_400

const BROKERS = [
  { app: await startApp(TOKENS), settings: { epss: 0.1, isUnknownExposed: true, windowHours: 24 } },
  {
    app: await startApp({
      ...TOKENS,
      SUPPLYCHAIN_TIER_EPSS: '0.5',
      SUPPLYCHAIN_TIER_UNKNOWN_EXPOSURE_AS_EXPOSED: 'false',
      SUPPLYCHAIN_IN_USE_MIN_WINDOW_HOURS: '48',
    }),
    settings: { epss: 0.5, isUnknownExposed: false, windowHours: 48 },
  },
] as const
type Settings = (typeof BROKERS)[number]['settings']

// ---- One story told to a broker -------------------------------------------------------------------------------------

let runs = 0

/** The names that one case has in the broker; no other case uses them. */
class Told {
  readonly #run = ++runs
  readonly #baseMs = Date.now()
  readonly #story: ClusterStory

  constructor(story: ClusterStory) {
    this.#story = story
  }

  /** Naive UTC, as agents write it. */
  at(ago: number): string {
    return new Date(this.msOf(ago)).toISOString().slice(0, -1)
  }
  msOf(ago: number): number {
    return this.#baseMs - ago * 1_000
  }
  namespace(n: number | 'outside'): string {
    return `ns-${n}-${this.#run}`
  }
  vulnerability(id: string): string {
    return `CVE-2099-${this.#run * 10_000 + Number(id)}`
  }
  image(n: number): string {
    return digestOf(`in use ${this.#run} ${n}`)
  }
  /** The digest of an index or of an image that is only guessed. */
  digestOf({ via, image, source, isShared }: PayloadStory): string {
    return via === 'digest' ? this.image(image) : digestOf(`${via} ${this.#run} ${image} ${source} ${isShared}`)
  }
  #ip(first: number, n: number): string {
    return `${first}.${this.#run >> 8}.${this.#run & 255}.${n}`
  }

  // The posts of agents about the workloads.

  workloads(until: Phase): { w: number; story: WorkloadStory; name: string; namespace: string }[] {
    return this.#story.workloads
      .map((story, w) => ({ w, story, name: `app-${w}-${this.#run}`, namespace: this.namespace(story.namespace) }))
      .filter(({ story }) => story.phase <= until)
  }

  podsOf(workload: { story: WorkloadStory; name: string }, until: Phase) {
    const { story, name } = workload
    const pods = story.kind === 'Pod' ? story.pods.slice(0, 1) : story.pods
    return pods
      .map((pod, n) => ({
        ...{ n, name: story.kind === 'Pod' ? name : `${name}-${n}`, isDead: pod.isDead },
        phase: n === 0 ? story.phase : (Math.max(pod.phase, story.phase) as Phase),
      }))
      .filter(({ phase }) => phase <= until)
      .map((pod) => ({
        ...pod,
        containers: story.containers.map((container, c) => ({
          ...{ name: `c${c}`, watch: container.watches[pod.n]! },
          image: this.image(pod.phase > story.phase ? container.later : container.image),
        })),
      }))
  }

  /** The watched containers of a workload, and what they say about it. */
  scene(workload: { story: WorkloadStory; name: string }, until: Phase): Scene {
    const pods = this.podsOf(workload, until)
    return {
      pods: pods.map(
        (pod): Pod => ({ name: pod.name, isDead: pod.isDead, running: pod.containers.map(({ name }) => name) }),
      ),
      instances: pods.flatMap((pod) =>
        pod.containers.flatMap(({ name, image, watch }): Instance[] => {
          const { startMode, beats } = WATCHES[watch]!
          return beats.length === 0 ? [] : [{ pod: pod.name, container: name, image, startMode, posts: [beats] }]
        }),
      ),
      suffixes: workload.story.containers.flatMap((container, c) =>
        container.files
          .filter(({ isComplete, phase }) => !isComplete && Math.max(phase, workload.story.phase) <= until)
          .map(() => ({ container: `c${c}`, image: this.image(container.image) })),
      ),
    }
  }

  payloads(until: Phase): Payload[] {
    const stored = new Map<string, Payload>()
    const told = this.#story.payloads.toSorted((a, b) => a.phase - b.phase).filter(({ phase }) => phase <= until)
    const put = (one: Payload) => {
      const key = `${one.digest} ${one.source} ${one.kind}`
      stored.delete(key)
      stored.set(key, one)
    }
    for (const one of told) {
      const images = this.imagesOf(one).map((n) => this.image(n))
      const sent = { source: one.source, digest: this.digestOf(one), via: one.via, images }
      if (one.components !== null) put({ ...sent, kind: 'sbom', rows: one.components })
      const rows = one.findings?.map((row) => ({ ...row, id: this.vulnerability(row.id) }))
      if (rows !== undefined) put({ ...sent, kind: 'vulnerabilities', rows })
    }
    return [...stored.values()]
  }
  imagesOf({ image, via, isShared }: PayloadStory): number[] {
    return via === 'index' && isShared ? [image, (image + 1) % 3] : [image]
  }

  cluster(settings: Settings, until: Phase): Cluster {
    const containers = this.workloads(until).flatMap((one) => {
      const { story, name, namespace } = one
      const workload: Workload = { namespace, kind: story.kind, name, exposure: exposureOf(this.peersOf(story, until)) }
      const scene = this.scene(one, until)
      const placed = this.podsOf(one, until).flatMap((pod) => pod.containers)
      return story.containers.flatMap(({ files, image: first }, c) => {
        const images = new Set(placed.filter((container) => container.name === `c${c}`).map(({ image }) => image))
        return [...images].map(
          (image): Container => ({
            ...{ workload, name: `c${c}`, image },
            files: image === this.image(first) ? files.filter((file) => this.#phaseOf(file, story) <= until) : [],
            coverage: judge(scene, `c${c}`, image, settings.windowHours * 3_600),
          }),
        )
      })
    })
    return { settings, containers, payloads: this.payloads(until) }
  }

  #phaseOf(one: { phase: Phase }, story: WorkloadStory): Phase {
    return Math.max(one.phase, story.phase) as Phase
  }

  peersOf(story: WorkloadStory, until: Phase): Peer[] {
    const KINDS: Record<FlowStory['peer'], Peer> = {
      ...{ 'own pod': 'own', 'own service': 'own', 'other pod': 'other', 'other service': 'other' },
      ...{ public: 'unknown', private: 'unknown', node: 'node' },
    }
    // The pod that reports the flows.
    const isAlive = !story.pods[0]!.isDead
    return story.flows
      .filter((flow) => this.#phaseOf(flow, story) <= until && !flow.isEgress)
      .map(({ peer, isOld }) => ({ peer: KINDS[peer], isOld }))
      .filter(({ peer, isOld }) => !isOld || (isAlive && (peer === 'other' || peer === 'unknown')))
      .map(({ peer }) => peer)
  }

  // The posts.

  /** Pods and services that open connections. */
  peers(): { pods: object[]; services: object[] } {
    const more = { started_at: this.at(30 * SECONDS_OF_DAY) }
    const places = [0, 1, 'outside'] as const
    return {
      pods: [
        ...places.map((of, n) =>
          podOf({ namespace: this.namespace(of), name: `peer-${n}-${this.#run}`, ip: this.#ip(10, 200 + n), more }),
        ),
        podOf({
          ...{ namespace: this.namespace('outside'), name: `proxy-${this.#run}`, ip: this.#ip(10, 210) },
          ...{ hostNetwork: true, more },
        }),
      ],
      services: places.map((of, n) =>
        serviceOf(this.namespace(of), `service-${n}-${this.#run}`, this.#ip(172, 200 + n), {
          ports: [{ port: 80 }],
        }),
      ),
    }
  }

  pods(of: Phase): object[] {
    return this.workloads(of).flatMap((workload) =>
      this.podsOf(workload, of)
        .filter((pod) => pod.phase === of)
        .flatMap((pod) => {
          const post = podOf({
            ...{ namespace: workload.namespace, name: pod.name, ip: this.#ip(10, 10 * workload.w + pod.n + 1) },
            ...(workload.story.kind === 'Pod' ? {} : { workload: `${workload.story.kind}/${workload.name}` }),
            more: {
              started_at: this.at(30 * SECONDS_OF_DAY),
              containers: pod.containers.map(({ name, image }) => ({
                ...{ name, kind: 'regular', digest: image, digest_kind: 'repo', state: 'running', tag: 'v1' },
                image: `registry.test/${this.#repository(image)}:v1`,
                repository: `registry.test/${this.#repository(image)}`,
              })),
            },
          })
          return pod.isDead ? [post, { ...post, is_dead: true }] : [post]
        }),
    )
  }
  #repository(image: string): string {
    return `team/i-${image.slice(-16)}`
  }

  heartbeats(of: Phase): object[] {
    return this.workloads(of).flatMap((workload) =>
      this.podsOf(workload, of)
        .filter((pod) => pod.phase === of)
        .flatMap((pod) =>
          pod.containers.flatMap(({ name, image, watch }) => {
            const { startMode, beats } = WATCHES[watch]!
            return beats.map((beat) => ({
              ...this.#owner(workload),
              ...{ pod_name: pod.name, container_name: name, image_digest: image, node_name: 'node-1' },
              ...{ container_id: digestOf(`${pod.name} ${name}`).slice(7), mode: beat.mode, start_mode: startMode },
              ...{ exec_probe: beat.execProbe, lib_probe: beat.libProbe, tracking_since: this.at(beat.trackedAgo) },
              ...{ events_dropped: beat.lost, unsent: beat.unsent, incomplete: beat.incomplete, ended: beat.ended },
              ...{ heartbeat_at: this.at(beat.ago), heartbeat_secs: beat.everySecs },
            }))
          }),
        ),
    )
  }
  #owner({ story, name, namespace }: { story: WorkloadStory; name: string; namespace: string }): Fields {
    return story.kind === 'Pod'
      ? { pod_namespace: namespace }
      : { pod_namespace: namespace, workload_kind: story.kind, workload_name: name }
  }

  executables(of: Phase): Fields[] {
    return this.workloads(of).flatMap((workload) => {
      const [pod] = this.podsOf(workload, of)
      return workload.story.containers.flatMap(({ files, image }, c) =>
        files
          .filter((file) => this.#phaseOf(file, workload.story) === of)
          .map(({ kind, path, isComplete, origin }) => ({
            ...this.#owner(workload),
            ...{ pod_name: pod!.name, container_name: `c${c}`, image_digest: this.image(image), kind, path, origin },
            ...{ path_complete: isComplete, source: 'ebpf', first_seen: this.at(7_200), last_seen: this.at(600) },
          })),
      )
    })
  }

  flows(of: Phase): object[] {
    const own = (story: WorkloadStory) => 200 + story.namespace
    const PEERS: Record<FlowStory['peer'], (story: WorkloadStory) => string> = {
      'own pod': (story) => this.#ip(10, own(story)),
      'own service': (story) => this.#ip(172, own(story)),
      'other pod': () => this.#ip(10, 202),
      'other service': () => this.#ip(172, 202),
      public: () => this.#ip(93, 1),
      private: () => this.#ip(192, 1).replace(/^192\.\d+/, '192.168'),
      node: () => this.#ip(10, 210),
    }
    return this.workloads(of).flatMap(({ w, story, name, namespace }) =>
      story.flows
        .map((flow, n) => ({ flow, n }))
        .filter(({ flow }) => this.#phaseOf(flow, story) === of)
        .map(({ flow, n }) => {
          const [pod] = this.podsOf({ story, name }, of)
          const from = podOf({ namespace, name: pod!.name, ip: this.#ip(10, 10 * w + 1) })
          const direction = flow.isEgress ? 'EGRESS' : 'INGRESS'
          return flowOf(from, direction, PEERS[flow.peer](story), `${8_000 + n}`, {
            time_stamp: this.at((flow.isOld ? 8 : 2) * SECONDS_OF_DAY),
          })
        }),
    )
  }

  posted(of: Phase): (Pick<Payload, 'digest' | 'kind' | 'source'> & { body: object })[] {
    return this.#story.payloads.flatMap((one, n) => {
      if (one.phase !== of) return []
      const digest = this.digestOf(one)
      const places = this.workloads(1).flatMap(({ story, name, namespace }) =>
        story.containers.map((_, c) => ({ namespace, kind: story.kind, name, container: `c${c}` })),
      )
      const named: Record<Via, Fields> = {
        digest: {},
        index: {
          digest_kind: 'index',
          platform_manifests: Object.fromEntries(this.imagesOf(one).map((i) => [`linux/arch${i}`, this.image(i)])),
        },
        tag: { registry: 'registry.test', repository: this.#repository(this.image(one.image)), tag: 'v1' },
      }
      const { source } = one
      const header = {
        ...{ schema_version: 1, source, image: { digest, ...named[one.via] } },
        // Those of the second phase are newer.
        scanned_at: `${this.at(SECONDS_OF_DAY - 100 * of - n)}Z`,
        ...(one.via === 'tag' ? { observed_in: places } : {}),
      }
      return [
        ...(one.components === null
          ? []
          : [
              {
                digest,
                source,
                kind: 'sbom' as const,
                body: { ...header, components: one.components.map(componentJson) },
              },
            ]),
        ...(one.findings === null
          ? []
          : [
              {
                ...{ digest, source, kind: 'vulnerabilities' as const },
                body: {
                  ...header,
                  vulnerabilities: one.findings.map((row) => ({
                    ...{ id: this.vulnerability(row.id), severity: row.severity, class: row.class },
                    package: { name: row.name, version: row.version, type: row.type },
                    ...{ file_paths: row.paths, epss: row.epss, fixed_version: row.isFixable ? '9' : null },
                    ...(row.kev ? { kev: true } : {}),
                  })),
                },
              },
            ]),
      ]
    })
  }
}

const componentJson = ({ name, version, type, class: of, paths }: PackageRow) => ({
  ...{ name, version, type, class: of, file_paths: paths },
})

// ---- The broker -----------------------------------------------------------------------------------------------------

const token = TOKENS.BROKER_TOKEN_READ

async function sends(app: App, path: string, body: unknown): Promise<void> {
  const answer = await app.post(path, body, { token: TOKENS.BROKER_TOKEN_INGEST })
  assert.equal(answer.status, 200, answer.text)
}

/** Compressed, as a payload may be large. */
async function sendsPayload(app: App, digest: string, kind: Payload['kind'], body: object): Promise<Json> {
  const answer = await app.request('POST', `/images/${digest}/${kind}`, {
    ...{ body: gzipSync(JSON.stringify(body)), token: TOKENS.BROKER_TOKEN_SUPPLYCHAIN },
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
  })
  assert.ok(answer.status === 200 || answer.status === 202, answer.text)
  return answer.json
}

/** Posts one phase. Resolves to the payloads that were stored, by digest, source and kind. */
async function tells(app: App, told: Told, of: Phase): Promise<Set<string>> {
  if (of === 0) {
    const { pods, services } = told.peers()
    for (const pod of pods) await sends(app, '/pod/spec', pod)
    for (const service of services) await sends(app, '/svc/spec', service)
  }
  for (const pod of told.pods(of)) await sends(app, '/pod/spec', pod)
  const [heartbeats, executables, flows] = [told.heartbeats(of), told.executables(of), told.flows(of)]
  if (heartbeats.length > 0) await sends(app, '/runtime/coverage', heartbeats)
  if (executables.length > 0) await sends(app, '/runtime/executables', executables)
  if (flows.length > 0) await sends(app, '/pod/traffic/batch', flows)
  const stored = new Set<string>()
  for (const { digest, kind, source, body } of told.posted(of))
    if ((await sendsPayload(app, digest, kind, body)).status === 'stored') stored.add(`${digest} ${source} ${kind}`)
  return stored
}

async function pass(app: App): Promise<void> {
  const context = { config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal }
  const { outcome } = await supplyChainRefresh.run(context)
  assert.equal(outcome, 'done')
}

async function get(app: App, path: string): Promise<Json> {
  const answer = await app.get(path, { token })
  assert.equal(answer.status, 200, `${path}: ${answer.text}`)
  return answer.json
}

/** All items of a list, in pages. */
async function itemsOf(app: App, path: string, limit = 500): Promise<Json[]> {
  const items: Json[] = []
  let after = ''
  for (let left = 200; left > 0; left--) {
    const page = await get(app, `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${after}`)
    items.push(...page.items)
    if (page.nextAfter === null) return items
    after = `&after=${encodeURIComponent(page.nextAfter)}`
  }
  assert.fail('the pages do not end')
}

// ---- Answers beside the model ---------------------------------------------------------------------------------------

const DETAIL_KEYS = ['state', 'reason', 'observedSince', 'windowHours', 'containers', 'coverage']

function assertDetail(item: Json, expected: Detail, coverages: readonly string[], told: Told | null, hours: number) {
  const { inUse, inUseState, inUseDetail: detail } = item
  assert.deepEqual([inUseState, inUse], [expected.state, inUseOf(expected.state)])
  assert.deepEqual(Object.keys(detail), DETAIL_KEYS)
  assert.deepEqual(
    [detail.state, detail.windowHours, detail.containers],
    [expected.state, hours, expected.containers],
    'inUseDetail',
  )
  assert.ok(expected.reasons.includes(detail.reason), `${detail.reason} is none of ${expected.reasons}`)
  assert.ok(coverages.includes(detail.coverage), `${detail.coverage} is none of ${coverages}`)
  const observedMs = detail.observedSince === null ? null : Date.parse(`${detail.observedSince}Z`)
  const { observedAgo } = expected
  if (told !== null) assert.equal(observedMs, observedAgo === null ? null : told.msOf(observedAgo), 'observedSince')
}

/** A limit that makes a few pages. */
const pageOf = (items: readonly unknown[]) => Math.max(2, Math.ceil(items.length / 6))

const keyOf = ({ id, name, version }: { id: string; name: string; version: string }) => `${id} ${name} ${version}`
const itemKey = (item: Json) => keyOf({ id: item.id, name: item.package.name, version: item.installedVersion })

async function assertFindings(app: App, model: Cluster, image: string, told: Told | null): Promise<void> {
  const path = `/images/${image}/vulnerabilities`
  const expected = new Map(findingsOf(model, image).map((one) => [keyOf(one), one]))
  const items = await itemsOf(app, path)
  assert.deepEqual(items.map(itemKey).sort(), [...expected.keys()].sort())
  for (const item of items) {
    const one = expected.get(itemKey(item))!
    try {
      assertDetail(item, one.detail, one.coverages, told, model.settings.windowHours)
      assert.equal(item.tier, one.tier, 'tier')
      assert.ok(
        one.factors.some((factors) => JSON.stringify(factors) === JSON.stringify(item.tierFactors)),
        `${JSON.stringify(item.tierFactors)} is none of ${JSON.stringify(one.factors)}`,
      )
    } catch (cause) {
      throw new Error(`${itemKey(item)}: ${(cause as Error).message}`, { cause })
    }
  }
  const keys = (some: Json[]) => some.map(itemKey).sort()
  const limit = pageOf(items)
  for (const tier of TIERS)
    assert.deepEqual(
      keys(await itemsOf(app, `${path}?tier=,${tier.toLowerCase()}`, limit)),
      [...expected.values()]
        .filter((one) => one.tier === tier)
        .map(keyOf)
        .sort(),
      tier,
    )
  for (const state of STATES)
    assert.deepEqual(
      keys(await itemsOf(app, `${path}?in_use=${state.toUpperCase()},`, limit)),
      [...expected.values()]
        .filter((one) => one.detail.state === state)
        .map(keyOf)
        .sort(),
      state,
    )
}

async function assertComponents(app: App, model: Cluster, image: string, told: Told): Promise<void> {
  for (const source of ['operator-scanner', 'db-matcher', 'registry']) {
    const items = await itemsOf(app, `/images/${image}/sbom?source=${source}`)
    for (const item of items) {
      try {
        const expected = componentOf(model, image, item)
        assertDetail(item, expected, ['static_binary', 'file', 'interpreted'], told, model.settings.windowHours)
      } catch (cause) {
        throw new Error(`component ${item.name} of ${source}: ${(cause as Error).message}`, { cause })
      }
    }
  }
}

const COUNTS = [
  ...(['workloads', 'executedWorkloads', 'loadedWorkloads', 'unknownWorkloads', 'notObservedWorkloads'] as const),
  'exposedWorkloads' as const,
]

async function assertSummary(app: App, model: Cluster, namespace: string | null): Promise<void> {
  const path = `/vulnerabilities${namespace === null ? '?' : `?namespace=${namespace}`}`
  assert.equal((await get(app, path)).order, 'tier')
  const expected = summaryOf(model, namespace).map((row) => ({
    ...{ id: row.id, severity: row.severity, tier: row.tier, inUseState: row.state, inUse: inUseOf(row.state) },
    ...Object.fromEntries(COUNTS.map((name) => [name, row[name]])),
  }))
  const shown = (items: Json[]) =>
    items.map(({ id, severity, tier, inUseState, inUse, ...rest }) => ({
      ...{ id, severity, tier, inUseState, inUse },
      ...Object.fromEntries(COUNTS.map((name) => [name, rest[name]])),
    }))
  assert.deepEqual(shown(await itemsOf(app, path, pageOf(expected))), expected)
  const some = (tiers: string[], states: State[]) =>
    expected.filter((row) => tiers.includes(row.tier) && states.includes(row.inUseState))
  assert.deepEqual(
    shown(
      await itemsOf(
        app,
        `${path}&tier=p0, Background&in_use=executed,unknown,installed_not_observed`,
        pageOf(expected) - 1,
      ),
    ),
    some(['P0', 'Background'], ['executed', 'unknown', 'installed_not_observed']),
  )
  assert.deepEqual(shown(await itemsOf(app, `${path}&tier=P1,P2`, pageOf(expected))), some(['P1', 'P2'], [...STATES]))
  assert.deepEqual(shown(await itemsOf(app, `${path}&in_use=loaded`)), some([...TIERS], ['loaded']))
}

async function assertExposure(app: App, model: Cluster): Promise<void> {
  const hits = hitsOf(model)
  for (const id of new Set(hits.map((hit) => hit.id))) {
    const answer = await get(app, `/vulnerabilities/${id}/exposure`)
    const own = hits.filter((hit) => hit.id === id)
    const text = (parts: (string | boolean | null)[]) => JSON.stringify(parts)
    assert.deepEqual(
      answer.workloads
        .map((row: Json) =>
          text([row.namespace, row.kind, row.name, row.container, row.imageDigest, row.inUseState, row.inUse]),
        )
        .sort(),
      own
        .map(({ container: { workload, name, image }, state }) =>
          text([workload.namespace, workload.kind, workload.name, name, image, state, inUseOf(state)]),
        )
        .sort(),
      id,
    )
    const state = strongest(own.map((hit) => hit.state))
    assert.deepEqual([answer.inUseState, answer.inUse], [state, inUseOf(state)], id)
  }
}

async function assertAll(app: App, model: Cluster, told: Told): Promise<void> {
  const images = new Set(model.containers.map(({ image }) => image))
  for (const image of images) {
    await assertFindings(app, model, image, told)
    await assertComponents(app, model, image, told)
  }
  // A report that is asked for by its own digest: nothing is known to run from it.
  for (const { digest, via } of model.payloads) {
    if (via === 'digest') continue
    const payloads = model.payloads.map(
      (one): Payload => (one.digest === digest ? { ...one, via: 'digest', images: [digest] } : { ...one, images: [] }),
    )
    await assertFindings(app, { ...model, payloads }, digest, told)
  }
  for (const namespace of [null, told.namespace(0), told.namespace(1)]) await assertSummary(app, model, namespace)
  await assertExposure(app, model)
}

/** No package is called unused while it waits for the pass that links it. */
async function assertNothingIsUnused(app: App, images: Iterable<string>): Promise<void> {
  for (const image of images)
    for (const kind of ['vulnerabilities', 'sbom'])
      for (const item of await itemsOf(app, `/images/${image}/${kind}`))
        assert.notEqual(item.inUseState, 'installed_not_observed', `${item.id ?? ''} ${item.name ?? item.package.name}`)
}

/**
 * The images of the inventory for which there is a file or an answering payload that is new since the last pass. A path
 * that was cut names no file.
 */
function newsOf(told: Told, before: Cluster, after: Cluster, stored: ReadonlySet<string>): string[] {
  const ran = new Set(
    told
      .executables(1)
      .filter(({ origin, path_complete }) => origin !== 'memfd' && path_complete)
      .map((entry) => entry.image_digest),
  )
  return [...new Set(before.containers.map(({ image }) => image))].filter(
    (image) =>
      ran.has(image) ||
      answering(after, image).some(({ digest, source, kind }) => stored.has(`${digest} ${source} ${kind}`)),
  )
}

/** Tables that are empty on a new broker. */
const emptiedOf = async ({ sql }: App): Promise<string> => {
  const tables = await sql<{ name: string }[]>`
    select c.relname as name from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`
  const empty: string[] = []
  for (const { name } of tables) if ((await sql.unsafe(`select from ${name} limit 1`)).length === 0) empty.push(name)
  return empty.join(', ')
}
const emptied = await Promise.all(BROKERS.map(({ app }) => emptiedOf(app)))

test('states, tiers and counts of any cluster are those of the contract, after each pass', {
  timeout: 3_600_000,
}, async () => {
  const seen: Record<string, number> = {}
  const count = (word: string) => {
    seen[word] = (seen[word] ?? 0) + 1
  }
  await fc.assert(
    fc.asyncProperty(cluster, fc.nat(BROKERS.length - 1), async (story, n) => {
      const { app, settings } = BROKERS[n]!
      await app.sql.unsafe(`truncate ${emptied[n]}`)
      const told = new Told(story)
      await tells(app, told, 0)
      await countEdges(app)
      const first = told.cluster(settings, 0)
      await assertNothingIsUnused(app, new Set(first.containers.map(({ image }) => image)))
      await pass(app)
      await assertAll(app, first, told)
      const stored = await tells(app, told, 1)
      await countEdges(app)
      const second = told.cluster(settings, 1)
      await assertNothingIsUnused(app, newsOf(told, first, second, stored))
      await pass(app)
      await assertAll(app, second, told)
      for (const hit of hitsOf(second)) {
        count(hit.state)
        count(hit.tier)
        count(hit.container.workload.exposure)
      }
    }),
    { numRuns: CLUSTERS, includeErrorInReport: true },
  )
  // Too few clusters at usual depth to have all of them.
  const words = [...STATES, ...TIERS, 'exposed', 'exposed:node_only', 'internal', 'exposure:unknown']
  for (const word of depth([], words))
    assert.ok((seen[word] ?? 0) > CLUSTERS / 10, `too few cases of ${word}: ${JSON.stringify(seen)}`)
})

// ---- Thousands of cases of paths, in images of one pass ---------------------------------------------------------

const PATH_CASES = depth(1_250, 10_000)
const CASES_OF_IMAGE = depth(1_250, 2_500)
/** As many as one post may have. */
const POSTED_AT_ONCE = 5_000

test('packages own the files that ran, by their path, the merged /usr and shorter sonames', {
  timeout: 600_000,
}, async () => {
  const { app } = BROKERS[0]
  await app.sql.unsafe(`truncate ${emptied[0]}`)
  const cases = fc.sample(pathCase, PATH_CASES)
  // Each in a folder of its own.
  const placed = (path: string, i: number) => path.replace(/\/([^/]*)$/, `/case${i}/$1`)
  const base = { pod_namespace: 'paths', workload_kind: 'Deployment', pod_name: 'paths-1', container_name: 'main' }
  const at = (ago: number) => new Date(Date.now() - ago * 1_000).toISOString().slice(0, -1)
  const seen: Record<string, number> = {}
  for (let first = 0; first < PATH_CASES; first += CASES_OF_IMAGE) {
    const digest = digestOf(`paths ${first}`)
    const some = cases.slice(first, first + CASES_OF_IMAGE)
    const workload = { ...base, workload_name: `paths-${first}`, pod_name: `paths-${first}` }
    await sends(app, '/pod/spec', {
      ...podOf({ namespace: 'paths', name: workload.pod_name, ip: '10.0.0.1', workload: `Deployment/paths-${first}` }),
      containers: [{ name: 'main', kind: 'regular', image: 'i', digest, digest_kind: 'repo', state: 'running' }],
    })
    const beat = { mode: 'full', exec_probe: true, lib_probe: true, start_mode: 'start', heartbeat_secs: 300 }
    await sends(app, '/runtime/coverage', [
      {
        ...{ ...workload, ...beat, image_digest: digest, container_id: digest.slice(7), node_name: 'node-1' },
        ...{ tracking_since: at(10 * SECONDS_OF_DAY), heartbeat_at: at(60) },
      },
    ])
    const entries = some.flatMap(({ ran }, i) =>
      ran.map(({ kind, path }) => ({
        ...{ ...workload, image_digest: digest, kind, path: placed(path, i), source: 'ebpf', origin: 'image' },
        ...{ first_seen: at(7_200), last_seen: at(600) },
      })),
    )
    for (let n = 0; n < entries.length; n += POSTED_AT_ONCE)
      await sends(app, '/runtime/executables', entries.slice(n, n + POSTED_AT_ONCE))
    const components = some.flatMap(({ lists }, i) =>
      lists.map((paths, p) => ({
        ...{ name: `${i}-${p}`, version: '1', type: 'debian', class: 'os-pkgs' },
        file_paths: paths.map((path) => placed(path, i)),
      })),
    )
    await sendsPayload(app, digest, 'sbom', {
      ...{ schema_version: 1, source: 'registry', image: { digest }, scanned_at: `${at(SECONDS_OF_DAY)}Z`, components },
    })
  }
  await pass(app)
  for (let first = 0; first < PATH_CASES; first += CASES_OF_IMAGE) {
    const items = await itemsOf(app, `/images/${digestOf(`paths ${first}`)}/sbom`)
    const states = new Map(items.map((item) => [item.name, item.inUseState]))
    for (const [i, { lists, ran }] of cases.slice(first, first + CASES_OF_IMAGE).entries()) {
      const named = lists.map((paths, p) => ({ name: `${i}-${p}`, paths: new Set(paths.map(canonical)) }))
      for (const { name, paths } of named) {
        const kinds = ran.filter(({ path }) => ownersOf(path, named).has(name)).map(({ kind }) => kind)
        const unseen = hasInterpreted(paths) ? 'unknown' : 'installed_not_observed'
        const state = kinds.includes('exec') ? 'executed' : kinds.includes('lib') ? 'loaded' : unseen
        seen[state] = (seen[state] ?? 0) + 1
        const text = `${JSON.stringify([...paths])} of ${JSON.stringify(lists)}, ran ${JSON.stringify(ran)}`
        assert.equal(states.get(name), state, text)
      }
    }
  }
  for (const state of ['executed', 'loaded', 'installed_not_observed'])
    assert.ok((seen[state] ?? 0) > PATH_CASES / 10, `too few cases of ${state}: ${JSON.stringify(seen)}`)
})

// ---- Every tier -----------------------------------------------------------------------------------------------------

test('every severity, known exploit, EPSS, fix, state and exposure has the tier and the factors of the contract', async () => {
  for (const [n, { app, settings }] of [...BROKERS.entries()].slice(0, depth(1, 2))) {
    await app.sql.unsafe(`truncate ${emptied[n]}`)
    const PEERS: FlowStory['peer'][][] = [[], ['own pod'], ['node'], ['node', 'own pod'], ['public', 'own pod', 'node']]
    const kinds = [
      { name: 'executed', path: '/usr/bin/executed', type: 'debian', class: 'os-pkgs' },
      { name: 'loaded', path: '/usr/lib/libloaded.so.1', type: 'debian', class: 'os-pkgs' },
      { name: 'unused', path: '/usr/bin/unused', type: 'debian', class: 'os-pkgs' },
      { name: 'jar', path: '/app/any.jar', type: 'jar', class: 'lang-pkgs' },
    ]
    const rows = SEVERITIES.flatMap((severity) =>
      [null, true].flatMap((kev) =>
        depth([null, 0.25], [null, 0.02, 0.25, 0.75]).flatMap((epss) =>
          [true, false].map((isFixable) => ({ severity, kev, epss, isFixable })),
        ),
      ),
    )
    const findings = kinds.flatMap(({ path, ...kind }, k) =>
      rows.map((row, r): FindingRow => ({ ...kind, ...row, version: '1', id: `${k * 100 + r}`, paths: [path] })),
    )
    const story: ClusterStory = {
      // An image holds the findings of one exposure; the model knows three.
      workloads: PEERS.slice(0, 3).map((peers, image) => workloadOf(image, peers)),
      payloads: [0, 1, 2].map((image) => payloadOf(image, findings)),
    }
    const others: ClusterStory = {
      workloads: PEERS.slice(3).map((peers, image) => workloadOf(image, peers)),
      payloads: [0, 1].map((image) => payloadOf(image, findings)),
    }
    for (const one of depth([story], [story, others])) {
      const told = new Told(one)
      await app.sql.unsafe(`truncate ${emptied[n]}`)
      await tells(app, told, 0)
      await countEdges(app)
      await pass(app)
      await assertAll(app, told.cluster(settings, 0), told)
    }
  }
})

const workloadOf = (image: number, peers: FlowStory['peer'][]): WorkloadStory => ({
  ...{ phase: 0, namespace: 0, kind: 'Deployment', pods: [{ phase: 0, isDead: false }] },
  containers: [
    {
      ...{ image, later: image, watches: ['covered'] },
      files: [
        { phase: 0, kind: 'exec', path: '/bin/executed', isComplete: true, origin: 'image' },
        { phase: 0, kind: 'lib', path: '/usr/lib/libloaded.so.1.2', isComplete: true, origin: 'image' },
      ],
    },
  ],
  flows: peers.map((peer) => ({ phase: 0, peer, isOld: false, isEgress: false })),
})
const payloadOf = (image: number, findings: FindingRow[]): PayloadStory => ({
  ...{ phase: 0, image, isShared: false, via: 'digest', source: 'operator-scanner', components: null, findings },
})

// ---- More files than are looked at ----------------------------------------------------------------------------------

test('all files of an image count, however many', async () => {
  const { app, settings } = BROKERS[0]
  await app.sql.unsafe(`truncate ${emptied[0]}`)
  const row = (name: string): FindingRow => ({
    ...{ name, version: '1', type: 'debian', class: 'os-pkgs', paths: [`/usr/bin/${name}`] },
    ...{ id: '1', severity: 'HIGH', isFixable: true, kev: null, epss: null },
  })
  const told = new Told({
    workloads: [workloadOf(0, [])],
    payloads: [payloadOf(0, [row('executed'), row('unused'), row('oldest')])],
  })
  await tells(app, told, 0)
  const [model] = told.executables(0)
  const many = Array.from({ length: 20_001 }, (_, n) => ({
    ...{ ...model, path: `/srv/${n}`, first_seen: told.at(7_200), last_seen: told.at(3_600) },
  }))
  for (let n = 0; n < many.length; n += POSTED_AT_ONCE)
    await sends(app, '/runtime/executables', many.slice(n, n + POSTED_AT_ONCE))
  await sends(app, '/runtime/executables', [{ ...model, path: '/usr/bin/oldest', last_seen: told.at(7_200) }])
  await countEdges(app)
  await pass(app)
  const items = await itemsOf(app, `/images/${told.image(0)}/vulnerabilities`)
  assert.deepEqual(
    items.map(({ package: { name }, inUseDetail: { state, reason } }) => `${name} ${state} ${reason}`).sort(),
    ['executed executed null', 'oldest executed null', 'unused installed_not_observed null'],
  )
  const [summary] = (await get(app, '/vulnerabilities')).items
  assert.deepEqual([summary.inUseState, summary.tier], ['executed', settings.isUnknownExposed ? 'P1' : 'P2'])
})

// ---- What is gone ---------------------------------------------------------------------------------------------------

test('a file that retention deletes and a workload that leaves the inventory count no more after the next pass', async () => {
  const { app } = BROKERS[0]
  await app.sql.unsafe(`truncate ${emptied[0]}`)
  const row: FindingRow = {
    ...{ name: 'executed', version: '1', type: 'debian', class: 'os-pkgs', paths: ['/usr/bin/executed'] },
    ...{ id: '1', severity: 'HIGH', isFixable: true, kev: null, epss: null },
  }
  const told = new Told({ workloads: [workloadOf(0, []), workloadOf(0, ['public'])], payloads: [payloadOf(0, [row])] })
  await tells(app, told, 0)
  await countEdges(app)
  const counts = async () => {
    await pass(app)
    const [{ workloads, executedWorkloads, unknownWorkloads, notObservedWorkloads, exposedWorkloads, tier }] = (
      await get(app, '/vulnerabilities')
    ).items
    return [workloads, executedWorkloads, unknownWorkloads, notObservedWorkloads, exposedWorkloads, tier]
  }
  assert.deepEqual(await counts(), [2, 2, 0, 0, 1, 'P1'])
  const [first, second] = told.workloads(0).map(({ name }) => name)
  await app.sql`
    update runtime_executable set last_seen = now() at time zone 'utc' - interval '40 days' where workload_name = ${first!}`
  const config = { ...app.deps.config, runtimeInventoryRetentionDays: 30 }
  await runtimeRetention.run({ config, db: app.db, log: app.deps.log, signal: new AbortController().signal })
  assert.deepEqual(await counts(), [2, 1, 0, 1, 1, 'P1'])
  await app.sql`delete from workload_container where workload_name = ${second!}`
  assert.deepEqual(await counts(), [1, 0, 0, 1, 0, 'Background'])
  const [item] = await itemsOf(app, `/images/${told.image(0)}/vulnerabilities`)
  assert.deepEqual(
    [item.inUseState, item.inUseDetail.containers, item.tier, item.tierFactors],
    ['installed_not_observed', 1, 'Background', ['in_use:installed_not_observed', 'severity:high', 'exposure:unknown']],
  )
})
