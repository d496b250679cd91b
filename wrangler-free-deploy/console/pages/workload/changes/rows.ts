/** The differences of a workload between two times, by part. A part without a record is never called unchanged. */
import type { JsonAnswer } from '../../../api/answers.ts'
import { originText } from '../../../parts/file-words.ts'
import { reasonText } from '../../../parts/reason-words.ts'

export type Diff = JsonAnswer<'/workloads/{namespace}/{kind}/{name}/diff'>
type Gap = Diff['notKnown'][number]
type List<T> = { readonly items: readonly T[]; readonly total: number; readonly truncated: boolean }

export interface ChangeRow {
  readonly change: string
  readonly what: string
  readonly before: string | null
  readonly after: string | null
  /** The id, for a link to the vulnerability. */
  readonly vulnerability?: string
  /** The digest, for a link to the image. */
  readonly digest?: string
}

export interface Part {
  readonly name: Gap['part']
  readonly title: string
  /** Null if the broker cannot compare; that does not mean unchanged. */
  readonly rows: readonly ChangeRow[] | null
  /** Shown if there are no rows; "not recorded then" does not mean unchanged. */
  readonly state: 'known' | 'not known' | 'not recorded then'
  /** Reasons why the part is not known, or not completely. */
  readonly gaps: readonly string[]
  /** Limits of the rows, such as cut lists. */
  readonly notes: readonly string[]
}

const DIGEST_CHARS = 19
const short = (digest: string): string => digest.slice(0, DIGEST_CHARS)

const row = (change: string, what: string, before: string | null = null, after: string | null = null): ChangeRow => ({
  ...{ change, what, before, after },
})

export function partsOf(diff: Diff): readonly Part[] {
  const part = (
    name: Gap['part'],
    title: string,
    rows: readonly ChangeRow[] | null,
    notes: readonly string[] = [],
  ) => ({
    ...{ name, title, rows, notes },
    state: stateOf(rows, diff.notKnown, name),
    gaps: gapsOf(diff.notKnown, name),
  })
  const { components, findings, edges, files, syscalls, images } = diff
  return [
    part('images', 'Images', imageRows(images), cutNotes([images?.rollouts])),
    part(
      'components',
      'Packages',
      componentRows(components),
      cutNotes([components?.added, components?.removed, components?.changed]),
    ),
    part(
      'findings',
      'Vulnerabilities',
      findingRows(findings),
      cutNotes([findings?.came, findings?.went, findings?.changed]),
    ),
    part('signatures', 'Signatures', signatureRows(diff.signatures)),
    part('edges', 'Connections', edgeRows(edges), [
      ...(edges !== null && edges.maybeQuiet > 0
        ? [`${edges.maybeQuiet} edges without a new flow are of pods that live: they may be in use.`]
        : []),
      ...cutNotes([edges?.firstSeen, edges?.goneQuiet]),
    ]),
    part('files', 'Files that ran', fileRows(files), cutNotes([files?.firstRun])),
    part('syscalls', 'Syscalls', syscallRows(syscalls), [
      ...(syscalls?.isComplete === false
        ? ['Not all syscalls are recorded, so one that is new here may have been made before.']
        : []),
      ...gapsOf(diff.notKnown, 'syscallsOnlyBefore').map((gap) => `Syscalls that are no longer made: ${gap}`),
      ...cutNotes([syscalls?.firstSeen, syscalls?.onlyBefore]),
    ]),
    part('confinement', 'Confinement', confinementRows(diff.confinement)),
  ]
}

function stateOf(rows: readonly ChangeRow[] | null, gaps: readonly Gap[], name: Gap['part']): Part['state'] {
  if (rows !== null) return 'known'
  const reasons = gaps.filter(({ part }) => part === name).map(({ reason }) => reason)
  return reasons.length > 0 && reasons.every((reason) => reason === 'not_recorded_then')
    ? 'not recorded then'
    : 'not known'
}

const gapsOf = (gaps: readonly Gap[], part: Gap['part']): string[] => [
  ...new Set(
    gaps
      .filter((gap) => gap.part === part)
      .map(({ reason, container, digest }) =>
        [container && `container ${container}`, digest && short(digest), reasonText(reason)].filter(Boolean).join(': '),
      ),
  ),
]

const cutNotes = (lists: readonly (List<unknown> | null | undefined)[]): string[] =>
  lists.flatMap((list) => (list?.truncated ? [`${list.items.length} of ${list.total} are listed.`] : []))

function imageRows(images: Diff['images']): ChangeRow[] | null {
  if (images === null) return null
  const changed = images.containers.filter(({ from, to }) => [...from].sort().join() !== [...to].sort().join())
  const names = (digests: readonly string[]) => (digests.length === 0 ? null : digests.map(short).join(', '))
  return [
    ...changed.map(({ container, from, to }) =>
      row(from.length === 0 ? 'added' : to.length === 0 ? 'removed' : 'changed', container, names(from), names(to)),
    ),
    ...images.rollouts.items.map(({ at, container, digest, imageRef }) => ({
      ...row('first seen', `${container}: ${imageRef || short(digest)}`, null, at),
      digest,
    })),
  ]
}

function componentRows(components: Diff['components']): ChangeRow[] | null {
  if (components === null) return null
  return [
    ...components.added.items.map(({ purl, name, version }) => row('added', purl ?? name, null, version)),
    ...components.removed.items.map(({ purl, name, version }) => row('removed', purl ?? name, version)),
    ...components.changed.items.map(({ purl, name, from, to }) => row('changed', purl ?? name, from, to)),
  ]
}

type FindingChange = NonNullable<Diff['findings']>['came']['items'][number]

function findingRows(findings: Diff['findings']): ChangeRow[] | null {
  if (findings === null) return null
  const rows = (change: string, items: readonly FindingChange[]) =>
    items.map(({ id, package: name, from, to, tier, inUse }) => ({
      ...row(
        change,
        `${id} in ${name}${tier === null ? '' : `, ${tier}`}${inUse === true ? ', in use' : ''}`,
        from && sideText(from),
        to && sideText(to),
      ),
      vulnerability: id,
    }))
  return [
    ...rows('came', findings.came.items),
    ...rows('went', findings.went.items),
    ...rows('changed', findings.changed.items),
  ]
}

const sideText = ({ severity, installedVersions, fixedVersions }: NonNullable<FindingChange['from']>): string =>
  `${severity.toLowerCase()} in ${installedVersions.join(', ')}${
    fixedVersions.length > 0 ? `, fixed in ${fixedVersions.join(', ')}` : ''
  }`

type Signature = NonNullable<Diff['signatures']>['before'][number]

function signatureRows(signatures: Diff['signatures']): ChangeRow[] | null {
  if (signatures === null) return null
  const text = ({ verdict, signers }: Signature) =>
    [
      verdict?.replaceAll('_', ' ') ?? 'not checked',
      ...signers.map(({ san, keyName }) => san ?? keyName ?? 'a key'),
    ].join(', ')
  return [
    ...signatures.before.map((one) => ({ ...row('went', short(one.digest), text(one)), digest: one.digest })),
    ...signatures.after.map((one) => ({ ...row('came', short(one.digest), null, text(one)), digest: one.digest })),
  ]
}

type Edge = NonNullable<Diff['edges']>['firstSeen']['items'][number]

/** `from shop/Deployment/web to port 8080/TCP`. */
export function edgeText({ direction, protocol, port, peer, verdict }: Edge): string {
  const { kind, namespace, workloadKind, workloadName, name, ip } = peer
  const parts = workloadName === null ? [namespace, name ?? ip] : [namespace, workloadKind, workloadName]
  const who = parts.filter((part) => part !== null).join('/')
  const text = workloadName === null ? `${kind} ${who}`.trim() : who
  return `${direction === 'ingress' ? 'from' : 'to'} ${text}, port ${port ?? '?'}/${protocol}${
    verdict === 'DROP' ? ', not answered' : ''
  }`
}

function edgeRows(edges: Diff['edges']): ChangeRow[] | null {
  if (edges === null) return null
  return [
    ...edges.firstSeen.items.map((edge) => row('first seen', edgeText(edge), null, edge.firstSeenAt)),
    ...edges.goneQuiet.items.map((edge) => row('gone quiet', edgeText(edge), edge.lastNewAt)),
  ]
}

function fileRows(files: Diff['files']): ChangeRow[] | null {
  return (
    files?.firstRun.items.map(({ container, kind, path, pathComplete, origin, firstSeen }) =>
      row(
        'ran first',
        [
          `${container}: ${kind === 'exec' ? 'program' : 'library'}`,
          pathComplete ? path : `…${path}`,
          `(${originText(origin)})`,
        ].join(' '),
        null,
        firstSeen,
      ),
    ) ?? null
  )
}

function syscallRows(syscalls: Diff['syscalls']): ChangeRow[] | null {
  if (syscalls === null) return null
  return [
    ...syscalls.firstSeen.items.map(({ name, at }) => row('first seen', name, null, at)),
    ...(syscalls.onlyBefore?.items ?? []).map((name) => row('no longer made', name)),
  ]
}

function confinementRows(confinement: Diff['confinement']): ChangeRow[] | null {
  if (confinement === null) return null
  const { weakened, podSecurity, seccompProfile, isSeccompWeakened } = confinement
  return [
    ...weakened.map(({ container, newlyFailing, levelFrom, levelTo }) =>
      row('weakened', `${placeOf(container)}: ${newlyFailing.join(', ')}`, levelFrom, levelTo),
    ),
    ...(seccompProfile === null
      ? []
      : [
          row(
            isSeccompWeakened ? 'weakened' : 'changed',
            'seccomp profile',
            profileText(seccompProfile.from),
            profileText(seccompProfile.to),
          ),
        ]),
    ...podSecurityRows(podSecurity),
  ]
}

const profileText = (profile: { readonly name: string; readonly defaultAction: string } | null): string | null =>
  profile && `${profile.name}, else ${profile.defaultAction}`

const placeOf = (container: string | null): string => (container === null ? 'the pod' : container)

type PodSecurityChange = Pick<
  NonNullable<Diff['confinement']>['podSecurity'],
  'level' | 'containersAdded' | 'containersRemoved' | 'pod' | 'containers'
>

export function podSecurityRows({ level, containersAdded, containersRemoved, pod, containers }: PodSecurityChange) {
  return [
    ...(level === null ? [] : [row('changed', 'Pod Security level', level.from, level.to)]),
    ...containersAdded.map((name) => row('added', name)),
    ...containersRemoved.map((name) => row('removed', name)),
    ...pod.map(({ field, from, to }) => row('changed', `the pod: ${field}`, valueText(from), valueText(to))),
    ...containers.flatMap(({ name, fields }) =>
      fields.map(({ field, from, to }) => row('changed', `${name}: ${field}`, valueText(from), valueText(to))),
    ),
  ]
}

/** Null also for a missing field. */
const valueText = (value: unknown): string | null =>
  value === null || value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value)

export type ProfileDiff = JsonAnswer<'/workloads/{namespace}/{kind}/{name}/profile/diff'>

export interface ProfilePart {
  readonly title: string
  readonly isChanged: boolean
  readonly rows: readonly ChangeRow[]
}

/** A dimension can be changed without any row, for example from unknown syscalls to none. */
export function profileParts({ dimensions }: ProfileDiff): readonly ProfilePart[] {
  const { network, syscalls, podSecurity, images } = dimensions
  const rule = ({ direction, peer, port, protocol }: (typeof network.added)[number]) =>
    `${direction === 'ingress' ? 'from' : 'to'} ${peer}, port ${port ?? '?'}/${protocol}`
  return [
    {
      ...{ title: 'Network', isChanged: network.changed },
      rows: [
        ...network.added.map((one) => row('added', rule(one))),
        ...network.removed.map((one) => row('removed', rule(one))),
      ],
    },
    {
      ...{ title: 'Syscalls', isChanged: syscalls.changed },
      rows: [
        ...syscalls.added.map((name) => row('added', name)),
        ...syscalls.removed.map((name) => row('removed', name)),
        ...(syscalls.captureLevel === null
          ? []
          : [row('changed', 'capture level', syscalls.captureLevel.from, syscalls.captureLevel.to)]),
        ...(syscalls.cr === null
          ? []
          : [row('changed', 'seccomp profile', profileText(syscalls.cr.from), profileText(syscalls.cr.to))]),
      ],
    },
    { title: 'Pod security', isChanged: podSecurity.changed, rows: podSecurityRows(podSecurity) },
    {
      ...{ title: 'Images', isChanged: images.changed },
      rows: [
        ...images.containersAdded.map((name) => row('added', name)),
        ...images.containersRemoved.map((name) => row('removed', name)),
        ...images.containers.map(({ name, added, removed }) =>
          row('changed', name, removed.map(short).join(', ') || null, added.map(short).join(', ') || null),
        ),
      ],
    },
  ]
}
