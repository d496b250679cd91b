/** Compares the report of coverage of random small clusters with a model of the spec, over all its pages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type Asked,
  containersModel,
  imagesModel,
  isProof,
  type Names,
  nodesModel,
  podsOf,
  scanAge,
  workloadsModel,
} from '../coverage/model.ts'
import { type CoverageStory, coverageStory } from '../coverage/scenes.ts'
import { WATCHES } from '../supply-chain/in-use-scenes.ts'
import { startApp } from '../support/app.ts'
import { storeAttestation, unverified } from '../support/attestations.ts'
import { depth } from '../support/depth.ts'
import { container, digestOf } from '../support/images.ts'
import { podPost } from '../support/records.ts'
import { component, finding, storeFindings, storeSbom } from '../support/supply-chain.ts'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

const CASES = depth(10, 300)
const app = await startApp()
const { sql } = app

let runs = 0

/** Names that no other case uses. */
function namesOf(baseMs: number): Names & { at: (ago: number) => string } {
  const run = ++runs
  const at = (ago: number) => new Date(baseMs - ago * 1_000).toISOString().slice(0, 19)
  const image = (n: number) => digestOf(`coverage ${run} ${n}`)
  return {
    ...{ at, image, namespace: (n) => `ns-${n}-${run}`, node: (n) => `node-${n}-${run}` },
    ...{ workload: (w) => `app-${w}-${run}`, pod: (w, p) => `app-${w}-${run}${p === 0 ? '' : `-${p}`}` },
    containerId: (w, p, c) => digestOf(`${run} ${w} ${p} ${c}`).slice('sha256:'.length),
    digestOf: ({ via, image: n, source, kind }) =>
      via === 'digest' ? image(n) : digestOf(`${run} ${via} ${n} ${source} ${kind}`),
    scannedAt: (one) => at(scanAge(one)),
  }
}
type Told = ReturnType<typeof namesOf>

async function sends(path: string, body: unknown): Promise<void> {
  const answer = await app.post(path, body)
  assert.equal(answer.status, 200, answer.text)
}

async function forget(): Promise<void> {
  await sql`
    truncate pod, pod_address, pod_instance, pod_syscalls, image, workload_container, image_report, image_link, image_finding,
             image_component, image_attestation, runtime_coverage, node_facts, seccomp_denial, seccomp_denial_node,
             workload_syscalls, syscall_contribution, unattributed_syscalls`
}

const stateOf = (state: string | null) =>
  state === 'crash' ? { state: 'waiting', state_reason: 'CrashLoopBackOff' } : { state }
const repositoryOf = (digest: string) => `registry.test/team/i-${digest.slice(-16)}`

async function tellPods(story: CoverageStory, told: Told): Promise<void> {
  const dead: string[] = []
  for (const [w, workload] of story.workloads.entries())
    for (const [p, pod] of podsOf(workload).entries()) {
      const name = told.pod(w, p)
      await sends(
        '/pod/spec',
        podPost({
          ...{ pod_name: name, pod_namespace: told.namespace(workload.namespace), node_name: told.node(pod.node) },
          time_stamp: told.at(story.nodes[pod.node]!.isSilent ? 7_200 : 10),
          ...(workload.kind === 'Pod' ? {} : { workload_kind: workload.kind, workload_name: told.workload(w) }),
          capture_level: pod.capture === 'none' ? 'full' : pod.capture,
          containers: workload.containers.map(({ images, states }, c) => {
            const digest = images[p] === null ? undefined : told.image(images[p]!)
            const repository = repositoryOf(digest ?? 'unknown-image-0')
            return container(`c${c}`, digest, { ...stateOf(states[p]!), repository, image: `${repository}:v1` })
          }),
        }),
      )
      if (pod.capture !== 'none')
        await sends('/pod/syscalls', [
          {
            pod_name: name,
            pod_namespace: told.namespace(workload.namespace),
            syscalls: ['read'],
            arch: 'x86_64',
            time_stamp: told.at(5),
          },
        ])
      if (pod.isDead) dead.push(name)
    }
  for (const pod_name of dead) await sends('/pod/mark_dead', { pod_name })
}

async function tellAgents(story: CoverageStory, told: Told): Promise<void> {
  const beats = story.workloads.flatMap((workload, w) =>
    podsOf(workload).flatMap((pod, p) =>
      workload.containers.flatMap(({ images, watches }, c) => {
        const { name, knowsImage } = watches[p]!
        const { startMode, beats } = WATCHES[name]!
        const image = images[p]
        return beats.map((beat) => ({
          ...{ pod_namespace: told.namespace(workload.namespace), pod_name: told.pod(w, p), container_name: `c${c}` },
          ...(workload.kind === 'Pod' ? {} : { workload_kind: workload.kind, workload_name: told.workload(w) }),
          ...{ container_id: told.containerId(w, p, c), node_name: told.node(pod.node), start_mode: startMode },
          image_digest: knowsImage && image !== null ? told.image(image!) : '',
          ...{ mode: beat.mode, exec_probe: beat.execProbe, lib_probe: beat.libProbe, ended: beat.ended },
          ...{ tracking_since: told.at(beat.trackedAgo), events_dropped: beat.lost, unsent: beat.unsent },
          ...{ incomplete: beat.incomplete, heartbeat_at: told.at(beat.ago), heartbeat_secs: beat.everySecs },
        }))
      }),
    ),
  )
  if (beats.length > 0) await sends('/runtime/coverage', beats)
  for (const [n, node] of story.nodes.entries()) {
    const node_name = told.node(n)
    if (node.hasFacts)
      await sends('/node/facts', {
        ...{ node_name, provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'ipv4', node_os: 'cos' },
      })
    if (node.drain !== 'none')
      await sends('/seccomp/denials', {
        node: node_name,
        capturing: node.drain !== 'detached',
        intervalSeconds: 10,
        denials: [],
      })
    if (node.drain === 'late')
      await sql`
        update seccomp_denial_node set updated_at = updated_at - interval '1 hour' where node_name = ${node_name}`
  }
  for (const [n, isBlind] of story.blind.entries())
    if (isBlind)
      await sql`
        insert into seccomp_denial (pod_uid, pod_name, pod_namespace, syscall, action, count, first_seen, last_seen)
        values (${told.namespace(n)}, 'nobody', ${told.namespace(n)}, 'ptrace', 'SCMP_ACT_LOG', 1, now(), now())`
}

async function tellScanners(story: CoverageStory, told: Told): Promise<void> {
  const seen = story.workloads.flatMap((workload, w) =>
    workload.containers.map((_, c) => ({
      ...{
        namespace: told.namespace(workload.namespace),
        kind: workload.kind,
        name: told.workload(w),
        container: `c${c}`,
      },
    })),
  )
  for (const one of story.payloads) {
    const image = told.image(one.image)
    const named = {
      digest: {},
      index: { digest_kind: 'index', platform_manifests: { 'linux/amd64': image } },
      tag: { normal_repository: repositoryOf(image), repository: repositoryOf(image), tag: 'v1', observed_in: seen },
    }
    const header = { scanned_at: told.scannedAt(one), ...named[one.via] }
    if (one.kind === 'sbom') await storeSbom({ sql }, told.digestOf(one), one.source, [component('c')], header)
    else
      await storeFindings(
        { sql },
        told.digestOf(one),
        one.source,
        [finding('CVE-2026-1', one.isCut ? { omitted: 3 } : {}), finding('CVE-2026-2')],
        header,
      )
  }
  for (const [n, verdict] of story.verdicts.entries())
    if (verdict !== null)
      await storeAttestation({ sql }, told.image(n), {
        ...{ verdict: verdict as never, signatures: verdict === 'unknown' ? [unverified('registry_error')] : [] },
        checked_at: told.at(3_600),
      })
}

async function tell(story: CoverageStory): Promise<Told> {
  await forget()
  const told = namesOf(Math.floor(Date.now() / 1_000) * 1_000)
  await tellPods(story, told)
  await tellAgents(story, told)
  await tellScanners(story, told)
  for (const [w, { isAged }] of story.workloads.entries())
    if (isAged)
      await sql`
        update workload_container set last_seen = last_seen - interval '1 day' where workload_name = ${told.workload(w)}`
  return told
}

/** All pages of a part: its items, and the totals of the first page. */
async function pagesOf(part: string, query: string): Promise<{ items: Json[]; totals: Json }> {
  const items: Json[] = []
  let totals: Json
  for (let after: string | null = ''; after !== null; ) {
    const answer = await app.get(`/coverage?part=${part}&${query}${after && `&after=${after}`}`)
    assert.equal(answer.status, 200, answer.text)
    const page = answer.json[part]
    if (after === '') totals = page.totals
    else assert.equal(page.totals, null)
    items.push(...page.items)
    after = page.nextAfter
  }
  return { items, totals }
}

const countsOf = (rows: readonly { missing: readonly string[] }[], codes: readonly string[]) => ({
  total: rows.length,
  known: rows.filter(({ missing }) => missing.length === 0).length,
  missing: Object.fromEntries(codes.map((code) => [code, rows.filter(({ missing }) => missing.includes(code)).length])),
})

const MODELS = { images: imagesModel, containers: containersModel, nodes: nodesModel, workloads: workloadsModel }
const shownOf: Record<string, (item: Json) => Json> = {
  images: ({ repository: _, signature, ...item }) => ({ ...item, verdict: signature?.verdict ?? null }),
  containers: ({ reasonDetail: _, observedSince: __, ...item }) => item,
  nodes: ({ node, alivePods, watchedContainers, missing }) => ({ node, alivePods, watchedContainers, missing }),
  workloads: ({ denialsReasonDetail: _, ...item }) => item,
}

async function compare(story: CoverageStory, told: Told, asked: Asked, limit: number): Promise<Json[]> {
  const { namespace, windowHours, olderThanDays } = asked
  const scope = namespace === null ? '' : `&namespace=${told.namespace(namespace)}`
  const query = `limit=${limit}&window_hours=${windowHours}&older_than_days=${olderThanDays}${scope}`
  const containers: Json[] = []
  for (const [part, model] of Object.entries(MODELS)) {
    const expected: Json[] = model(story, told, asked)
    const all = await pagesOf(part, `${query}&include_known=true`)
    assert.deepEqual(all.items.map(shownOf[part]!), expected, part)
    assert.deepEqual(all.totals, countsOf(expected, Object.keys(all.totals.missing)), part)
    const unknown = await pagesOf(part, query)
    assert.deepEqual(
      unknown.items,
      all.items.filter(({ missing }) => missing.length > 0),
    )
    assert.deepEqual(unknown.totals, all.totals)
    assert.deepEqual(await pagesOf(part, `${query}&totals=false`), { items: unknown.items, totals: null })
    if (part === 'containers') containers.push(...all.items)
  }
  return containers
}

test(`${CASES} random clusters: each running image, container, node and workload once, as in the model`, async () => {
  const reasons = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(
      coverageStory,
      fc.integer({ min: 1, max: 3 }),
      fc.constantFrom(24, 48),
      fc.constantFrom(30, 5),
      async (story, limit, windowHours, olderThanDays) => {
        const told = await tell(story)
        for (const namespace of [null, 0]) {
          const asked = { namespace, windowHours, olderThanDays }
          for (const row of await compare(story, told, asked, limit)) {
            if (row.reason === null) assert.equal(row.reasonDetail, null)
            else {
              assert.ok(isProof(story, told, row, row.reasonDetail, windowHours), JSON.stringify(row))
              const key = `${row.reason} ${row.reasonDetail?.cause}`
              reasons.set(key, (reasons.get(key) ?? 0) + 1)
            }
          }
        }
      },
    ),
    { numRuns: CASES },
  )
  assert.ok(reasons.size >= depth(6, 14), JSON.stringify([...reasons]))
})
