/** The answer of GET /changes (docs/contract.md#changes). */
import type { Config } from '../config/index.ts'
import { fixed, type Gate } from '../db/index.ts'
import { writeCursor } from '../http/request/cursor.ts'
import { type ConfinementDiff, confinementDiff } from './confinement.ts'
import { type EdgesDiff, edgesDiff, isExposing, isToOutside } from './edges.ts'
import { changedImages, type ImagesDiff, imagesDiff, isRecordedAt, type Rollout } from './images.ts'
import type { Listed } from './listed.ts'
import { gap, type Known, sortedGaps } from './not-known.ts'
import { compareWeights, maskOf, SIGNALS, type Signal, type Weight } from './order.ts'
import { type CveChanges, readCveChanges } from './read/cves.ts'
import { readEdgeRecords } from './read/edges.ts'
import { type FirstFile, readFirstFiles } from './read/files.ts'
import { readSignatures, type SignatureAt } from './read/images.ts'
import { readInventory } from './read/inventory.ts'
import type { Range } from './read/range.ts'
import { readSyscallRecords } from './read/syscalls.ts'
import { readVersionRecords } from './read/versions.ts'
import type { WorkloadName } from './read/workloads.ts'
import { type ChangedWorkload, type ChangePage, MAX_FACTS } from './record.ts'
import { severityOf, shownEdge } from './shown.ts'
import { type SyscallsDiff, syscallsDiff } from './syscalls.ts'
import { sidesOf } from './workload-diff.ts'

/** Workloads of a namespace that are looked at, by kind and name. */
export const MAX_WORKLOADS = 500

/** The keys of the last item of a page, after its range: pages of one list are about the same time. */
export type ChangeCursor = readonly [
  from: string,
  to: string,
  mask: number,
  changes: number,
  kind: string,
  name: string,
]

const WORKLOADS = fixed<[{ total: number; workloads: WorkloadName[] }]>(`
  with asked as materialized (select $1::text as namespace),
  found as materialized (
    select w.workload_kind as kind, w.workload_name as name
    from asked a join workload_container w on w.pod_namespace = a.namespace and w.cluster_id = 'primary'
    union
    select p.workload_kind, p.workload_name
    from asked a join workload_profile p on p.pod_namespace = a.namespace and p.cluster_id = 'primary')
  select (select count(*) from found)::float8 as total,
         (select coalesce(json_agg(json_build_object('kind', w.kind, 'name', w.name)), '[]')
          from (select f.kind, f.name from found f order by f.kind, f.name limit ${MAX_WORKLOADS}) w) as workloads`)

interface Facts {
  readonly images: Known<ImagesDiff>
  readonly edges: Known<EdgesDiff>
  readonly files: Known<Listed<FirstFile>>
  readonly syscalls: Known<SyscallsDiff>
  readonly confinement: Known<ConfinementDiff>
  /** Null, without a reason of its own, where the images are not known. */
  readonly cves: Known<CveChanges>
  /** Images that no container of the workload had before the range, the newest first. */
  readonly newImages: readonly Rollout[]
}

interface Page {
  readonly limit: number
  readonly after: ChangeCursor | null
}

/** Lists the workloads of a namespace by how telling their changes in the range are. */
export async function namespaceChanges(
  gate: Gate,
  namespace: string,
  range: Range,
  { limit, after }: Page,
  config: Config,
): Promise<ChangePage> {
  const [found] = await gate((sql) => WORKLOADS(sql, namespace))
  const { total, workloads } = found!
  const facts = await readFacts(gate, namespace, workloads, range, config)
  const digests = [...new Set(facts.flatMap(({ newImages }) => newImages.map(({ digest }) => digest)))]
  const signatures = await readSignatures(gate, digests, config.attestationRetentionDays)
  const verdicts = new Map(signatures.map((one) => [one.digest, one]))
  const items = workloads
    .map((workload, n) => changedWorkload(namespace, workload, facts[n]!, verdicts))
    .map((item) => ({ item, weight: weightOf(item) }))
    .sort((a, b) => compareWeights(a.weight, b.weight))
    .filter(({ weight }) => after === null || compareWeights(weight, placeOf(after)) > 0)
  const shown = items.slice(0, limit)
  const last = shown.at(-1)
  return {
    namespace,
    ...range,
    items: shown.map(({ item }) => item),
    total,
    truncated: total > workloads.length,
    nextAfter: last && items.length > limit ? writeAfter(range, last.weight) : null,
  }
}

const weightOf = ({ signals, changes, kind, name }: ChangedWorkload): Weight => ({
  mask: maskOf(signals),
  ...{ changes, kind, name },
})
const placeOf = ([, , mask, changes, kind, name]: ChangeCursor): Weight => ({ mask, changes, kind, name })
const writeAfter = ({ from, to }: Range, { mask, changes, kind, name }: Weight) =>
  writeCursor([from, to, mask, changes, kind, name])

async function readFacts(
  gate: Gate,
  namespace: string,
  workloads: readonly WorkloadName[],
  { from, to }: Range,
  config: Config,
): Promise<Facts[]> {
  if (workloads.length === 0) return []
  const inventory = {
    runningWindowSecs: config.imageRunningWindowSecs,
    retentionDays: config.imageInventoryRetentionDays,
  }
  const files = {
    from,
    to,
    retentionDays: config.runtimeInventoryRetentionDays,
    most: MAX_FACTS,
    isOnlyUnshipped: true,
  }
  const records = readInventory(gate, namespace, workloads, inventory).then((all) =>
    all.map((record) => ({ record, images: imagesDiff(record, from, to) })),
  )
  const [ran, edges, firstFiles, syscalls, versions, cves] = await Promise.all([
    records,
    readEdgeRecords(gate, namespace, workloads, from, config.flowEdgeRetentionDays),
    readFirstFiles(gate, namespace, workloads, files),
    readSyscallRecords(gate, namespace, workloads),
    readVersionRecords(gate, namespace, workloads, from, to),
    records.then((all) =>
      readCveChanges(
        gate,
        namespace,
        all.map(({ images }, n) => ({ ...workloads[n]!, containers: images.value?.containers ?? [] })),
      ),
    ),
  ])
  return workloads.map((_, n) => {
    const { record, images } = ran[n]!
    return {
      images,
      edges: edgesDiff({ ...edges[n]!, isRecorded: isRecordedAt(record, from) }, from, to),
      files: firstFiles[n]!,
      syscalls: syscallsDiff(syscalls[n]!, sidesOf(images), from, to),
      confinement: confinementDiff(versions[n]!),
      cves:
        images.value === null
          ? { value: null, gaps: images.gaps.map(({ reason }) => gap('findings', reason)) }
          : cves[n]!,
      newImages: newImages(images),
    }
  })
}

/** An image that came back is not new. */
function newImages({ value }: Known<ImagesDiff>): Rollout[] {
  if (value === null) return []
  const { after } = changedImages(value)
  return value.rollouts.filter(({ digest }) => after.includes(digest)).toReversed()
}

const UNTRUSTED: readonly (string | null)[] = ['unsigned', 'invalid', 'key_signed']

function changedWorkload(
  namespace: string,
  { kind, name }: WorkloadName,
  { images, edges, files, syscalls, confinement, cves, newImages }: Facts,
  verdicts: ReadonlyMap<string, SignatureAt>,
): ChangedWorkload {
  const checked = [...new Set(newImages.map(({ digest }) => digest))].map((digest) => verdicts.get(digest)!)
  const untrusted = checked.filter(({ verdict }) => UNTRUSTED.includes(verdict))
  const first = edges.value?.firstSeen ?? []
  const exposing = first.filter((edge) => isExposing(edge, namespace))
  const outside = first.filter(isToOutside)
  const weakened = confinement.value && confinement.value.weakened.length + Number(confinement.value.isSeccompWeakened)
  const came = cves.value?.came ?? null
  const isKnown = images.value !== null
  const counts: ChangedWorkload['counts'] = {
    newImages: isKnown ? checked.length : null,
    untrustedImages: isKnown ? untrusted.length : null,
    uncheckedImages: isKnown ? checked.filter(({ verdict }) => verdict === null || verdict === 'unknown').length : null,
    findingsCame: came && { ...came },
    urgentFindingsInUse: cves.value?.urgentInUse ?? null,
    findingsWent: cves.value?.went ?? null,
    newEdges: edges.value && first.length,
    exposingEdges: edges.value && exposing.length,
    outsideEdges: edges.value && outside.length,
    unshippedFiles: files.value?.total ?? null,
    newSyscalls: syscalls.value?.firstSeen.length ?? null,
    weakened,
  }
  const shows: Record<Signal, boolean> = {
    urgentFindingsInUse: (counts.urgentFindingsInUse ?? 0) > 0,
    untrustedImage: untrusted.length > 0,
    newExposure: exposing.length + outside.length > 0,
    unshippedFiles: (counts.unshippedFiles ?? 0) > 0,
    confinementWeakened: (weakened ?? 0) > 0,
    urgentFindings: came !== null && came.P0 + came.P1 > 0,
    newImage: checked.length > 0,
  }
  const all = [...exposing, ...outside, ...first.filter((edge) => !exposing.includes(edge) && !outside.includes(edge))]
  const few = <T>(list: readonly T[] | undefined): T[] => (list ?? []).slice(0, MAX_FACTS)
  return {
    kind,
    name,
    signals: SIGNALS.filter((signal) => shows[signal]),
    changes: changesOf(counts),
    counts,
    facts: {
      images: few(newImages),
      signatures: few(untrusted).map(({ digest, verdict }) => ({ digest, verdict: verdict as 'unsigned' })),
      findings: few(cves.value?.first).map(({ id, severity, tier, isUsed }) => ({
        ...{ id, severity: severityOf(severity), tier },
        inUse: isUsed ? true : null,
      })),
      edges: few(all).map(shownEdge),
      files: few(files.value?.items) as ChangedWorkload['facts']['files'],
      syscalls: few(syscalls.value?.firstSeen),
      weakened: few(confinement.value?.weakened),
    },
    notKnown: sortedGaps(
      [images, edges, files, syscalls, confinement, cves]
        .flatMap(({ gaps }) => gaps)
        .filter(({ part }) => part !== 'syscallsOnlyBefore'),
    ),
  }
}

function changesOf({ newImages, findingsCame, findingsWent, newEdges, ...rest }: ChangedWorkload['counts']): number {
  const came = findingsCame === null ? [] : Object.values(findingsCame)
  const { unshippedFiles, newSyscalls, weakened } = rest
  return [newImages, ...came, findingsWent, newEdges, unshippedFiles, newSyscalls, weakened].reduce<number>(
    (sum, count) => sum + (count ?? 0),
    0,
  )
}
