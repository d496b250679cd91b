/** The answer of GET /workloads/{namespace}/{kind}/{name}/diff (docs/contract.md#changes). */
import type { Config } from '../config/index.ts'
import type { Gate } from '../db/index.ts'
import type { WorkloadKey } from '../profile/built.ts'
import { confinementDiff } from './confinement.ts'
import { edgesDiff } from './edges.ts'
import type { FindingPair } from './findings.ts'
import { shownSignature } from './image-diff.ts'
import { changedImages, type ImagesDiff, imagesDiff, isRecordedAt } from './images.ts'
import { type Gap, gap, type Known, type Part, sortedGaps, unknown } from './not-known.ts'
import { readTiers } from './read/cves.ts'
import { readEdgeRecords } from './read/edges.ts'
import { readFirstFiles } from './read/files.ts'
import { readComponentsDiff, readFindingsDiff, readSignatures } from './read/images.ts'
import { readInventory } from './read/inventory.ts'
import type { Range } from './read/range.ts'
import { readSyscallRecords } from './read/syscalls.ts'
import { readVersionRecords } from './read/versions.ts'
import { MAX_ITEMS, type WorkloadDiff } from './record.ts'
import { shortList, shownComponents, shownEdge, shownFinding, shownFindings } from './shown.ts'
import { syscallsDiff } from './syscalls.ts'

/** Parts that compare the images of both times. */
const OF_IMAGES: readonly Part[] = ['components', 'findings', 'signatures']

/** Says what changed in a workload from one time to another. */
export async function workloadDiff(
  gate: Gate,
  workload: WorkloadKey,
  { from, to }: Range,
  config: Config,
): Promise<WorkloadDiff> {
  const { namespace } = workload
  const one = [workload]
  const inventory = {
    runningWindowSecs: config.imageRunningWindowSecs,
    retentionDays: config.imageInventoryRetentionDays,
  }
  const range = {
    from,
    to,
    retentionDays: config.runtimeInventoryRetentionDays,
    most: MAX_ITEMS,
    isOnlyUnshipped: false,
  }
  const [[record], [edgeRecord], [files], [syscallRecord], [versions]] = await Promise.all([
    readInventory(gate, namespace, one, inventory),
    readEdgeRecords(gate, namespace, one, from, config.flowEdgeRetentionDays),
    readFirstFiles(gate, namespace, one, range),
    readSyscallRecords(gate, namespace, one),
    readVersionRecords(gate, namespace, one, from, to),
  ])
  const images = imagesDiff(record!, from, to)
  const edges = edgesDiff({ ...edgeRecord!, isRecorded: isRecordedAt(record!, from) }, from, to)
  const syscalls = syscallsDiff(syscallRecord!, sidesOf(images), from, to)
  const confinement = confinementDiff(versions!)
  const ofImages = await readOfImages(gate, workload, images, config)
  return {
    ...workload,
    from,
    to,
    images: images.value && {
      ...images.value,
      containers: images.value.containers.map((one) => ({ ...one, from: [...one.from], to: [...one.to] })),
      rollouts: shortList(images.value.rollouts),
    },
    ...ofImages.parts,
    edges: edges.value && {
      firstSeen: shortList(edges.value.firstSeen.map(shownEdge)),
      goneQuiet: shortList(edges.value.goneQuiet.map(shownEdge)),
      maybeQuiet: edges.value.maybeQuiet,
    },
    files: files!.value && { firstRun: files!.value as NonNullable<WorkloadDiff['files']>['firstRun'] },
    syscalls: syscalls.value && {
      firstSeen: shortList(syscalls.value.firstSeen),
      isComplete: syscalls.value.isComplete,
      onlyBefore: syscalls.value.onlyBefore && shortList(syscalls.value.onlyBefore),
    },
    confinement: confinement.value && { ...confinement.value, weakened: [...confinement.value.weakened] },
    notKnown: sortedGaps([
      ...[images, edges, files!, syscalls, confinement].flatMap(({ gaps }) => gaps),
      ...ofImages.gaps,
    ]),
  }
}

/** The images that only ran before, and all that run after; null where they are not known. */
export function sidesOf(images: Known<ImagesDiff>) {
  if (images.value === null) return null
  const now = [...new Set(images.value.containers.flatMap(({ to }) => to))]
  return { before: changedImages(images.value).before, now }
}

type OfImages = Pick<WorkloadDiff, 'components' | 'findings' | 'signatures'>

async function readOfImages(
  gate: Gate,
  workload: WorkloadKey,
  images: Known<ImagesDiff>,
  config: Config,
): Promise<{ parts: OfImages; gaps: readonly Gap[] }> {
  if (images.value === null) {
    const gaps = OF_IMAGES.flatMap((part) => images.gaps.map(({ reason }) => gap(part, reason)))
    return { parts: { components: null, findings: null, signatures: null }, gaps: unknown(...gaps).gaps }
  }
  const sides = changedImages(images.value)
  const { containers } = images.value
  const [components, findings, signatures, tiers] = await Promise.all([
    readComponentsDiff(gate, sides),
    readFindingsDiff(gate, sides),
    readSignatures(gate, [...sides.before, ...sides.after], config.attestationRetentionDays),
    readTiers(gate, workload.namespace, { ...workload, containers }),
  ])
  const shown = (pair: FindingPair) => {
    const counted = pair.to === null ? undefined : tiers.get(pair.id)
    return {
      ...shownFinding(pair),
      tier: counted?.tier ?? null,
      inUse: counted?.isUsed ? (true as const) : null,
    }
  }
  const signaturesOf = (digests: readonly string[]) =>
    signatures.filter(({ digest }) => digests.includes(digest)).map(shownSignature)
  return {
    parts: {
      components: components.value && shownComponents(components.value, config.wireNames),
      findings: findings.value && shownFindings(findings.value, config.wireNames, shown),
      signatures: { before: signaturesOf(sides.before), after: signaturesOf(sides.after) },
    },
    gaps: [...components.gaps, ...findings.gaps],
  }
}
