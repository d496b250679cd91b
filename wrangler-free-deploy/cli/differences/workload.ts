/** The differences of a workload between two times. */
import { timeText } from '../output/cell.ts'
import { counted } from '../output/lines.ts'
import { shortDigest } from '../output/words.ts'
import { type Confinement, confinementRows } from './confinement.ts'
import { type Gap, gapTexts } from './gaps.ts'
import {
  type ComponentChanges,
  componentRows,
  cutTexts,
  digestTexts,
  type FindingChanges,
  fileText,
  findingRows,
  type List,
  type Row,
  type RunFile,
  rowOf,
  type SignatureOfImage,
  signatureText,
} from './rows.ts'
import { viewOf } from './view.ts'

interface Edge {
  readonly direction: string
  readonly protocol: string
  readonly port: string | null
  readonly peer: {
    readonly kind: string
    readonly namespace: string | null
    readonly workloadKind: string | null
    readonly workloadName: string | null
    readonly name: string | null
    readonly ip: string | null
  }
  readonly firstSeenAt: string
  readonly lastNewAt: string
}

export interface WorkloadDiff {
  readonly from: string
  readonly to: string
  readonly images: {
    readonly containers: readonly {
      readonly container: string
      readonly from: readonly string[]
      readonly to: readonly string[]
    }[]
    readonly rollouts: List<{
      readonly at: string
      readonly container: string
      readonly digest: string
      readonly imageRef: string
    }>
  } | null
  readonly components: ComponentChanges | null
  readonly findings: FindingChanges | null
  readonly signatures: {
    readonly before: readonly SignatureOfImage[]
    readonly after: readonly SignatureOfImage[]
  } | null
  readonly edges: {
    readonly firstSeen: List<Edge>
    readonly goneQuiet: List<Edge>
    readonly maybeQuiet: number
  } | null
  readonly files: {
    readonly firstRun: List<
      RunFile & { readonly container: string; readonly origin: string; readonly firstSeen: string }
    >
  } | null
  readonly syscalls: {
    readonly firstSeen: List<{ readonly name: string; readonly at: string }>
    readonly isComplete: boolean
    readonly onlyBefore: List<string> | null
  } | null
  readonly confinement: Confinement | null
  readonly notKnown: readonly Gap[]
}

export const WORKLOAD_VIEW = viewOf<WorkloadDiff>({
  rowsOf: ({ images, components, findings, signatures, edges, files, syscalls, confinement }) => [
    ...imageRows(images),
    ...(components === null ? [] : componentRows(components)),
    ...(findings === null ? [] : findingRows(findings)),
    ...(signatures?.before ?? []).map((one) =>
      rowOf('signatures', 'went', shortDigest(one.digest), signatureText(one), null, one.digest),
    ),
    ...(signatures?.after ?? []).map((one) =>
      rowOf('signatures', 'came', shortDigest(one.digest), null, signatureText(one), one.digest),
    ),
    ...(edges?.firstSeen.items ?? []).map((edge) =>
      rowOf('edges', 'first seen', edgeText(edge), null, timeText(edge.firstSeenAt, true)),
    ),
    ...(edges?.goneQuiet.items ?? []).map((edge) =>
      rowOf('edges', 'gone quiet', edgeText(edge), timeText(edge.lastNewAt, true)),
    ),
    ...(files?.firstRun.items ?? []).map((file) =>
      rowOf(
        'files',
        'first run',
        `${file.container}: ${fileText(file)} (${file.origin})`,
        null,
        timeText(file.firstSeen, true),
      ),
    ),
    ...(syscalls?.firstSeen.items ?? []).map(({ name, at }) =>
      rowOf('syscalls', 'first seen', name, null, timeText(at, true)),
    ),
    ...(syscalls?.onlyBefore?.items ?? []).map((name) => rowOf('syscalls', 'only before', name)),
    ...(confinement === null ? [] : confinementRows(confinement)),
  ],
  notesOf: ({ from, to, images, components, findings, edges, files, syscalls }) => [
    `from ${timeText(from, true)} to ${timeText(to, true)}`,
    ...(edges !== null && edges.maybeQuiet > 0
      ? [`${counted(edges.maybeQuiet, 'edge')} without a new flow, of pods that live: they may be in use`]
      : []),
    ...cutTexts({
      'images that were rolled out': images?.rollouts,
      'components added': components?.added,
      'components removed': components?.removed,
      'components changed': components?.changed,
      'findings that came': findings?.came,
      'findings that went': findings?.went,
      'findings that changed': findings?.changed,
      'edges first seen': edges?.firstSeen,
      'edges gone quiet': edges?.goneQuiet,
      'files that ran first': files?.firstRun,
      'syscalls first seen': syscalls?.firstSeen,
      'syscalls only seen before': syscalls?.onlyBefore,
    }),
  ],
  gapsOf: ({ notKnown, syscalls }) => [
    ...gapTexts(notKnown),
    ...(syscalls?.isComplete === false ? ['not known: syscalls: the capture is not complete'] : []),
  ],
})

function imageRows(images: WorkloadDiff['images']): Row[] {
  if (images === null) return []
  const changed = images.containers.filter(({ from, to }) => [...from].sort().join() !== [...to].sort().join())
  return [
    ...changed.map(({ container, from, to }) => {
      const change = from.length === 0 ? 'added' : to.length === 0 ? 'removed' : 'changed'
      return rowOf('images', change, container, digestTexts(from), digestTexts(to))
    }),
    ...images.rollouts.items.map(({ at, container, digest, imageRef }) =>
      rowOf(
        'images',
        'first seen',
        `${container}: ${imageRef || 'image'} ${shortDigest(digest)}`,
        null,
        timeText(at, true),
      ),
    ),
  ]
}

/** `ingress from shop/Deployment/web 8080/TCP`. */
function edgeText({ direction, protocol, port, peer }: Edge): string {
  const { kind, namespace, workloadKind, workloadName, name, ip } = peer
  const parts = workloadName === null ? [namespace, name ?? ip] : [namespace, workloadKind, workloadName]
  const who = parts.filter((part) => part !== null).join('/')
  const peerText = workloadName === null ? `${kind} ${who}`.trim() : who
  return `${direction} ${direction === 'ingress' ? 'from' : 'to'} ${peerText} ${port ?? 'unknown port'}/${protocol}`
}
