/** Differences of images and of workloads as one list. */
import { shortDigest } from '../output/words.ts'

export interface Row {
  readonly part: string
  readonly change: string
  readonly what: string
  readonly before: string | null
  readonly after: string | null
  /** As other commands take it. */
  readonly name: string
}

/** A list of an answer, which may be cut. */
export interface List<Item> {
  readonly items: readonly Item[]
  readonly total: number
  readonly truncated: boolean
}

export interface ComponentChanges {
  readonly added: List<OneSide>
  readonly removed: List<OneSide>
  readonly changed: List<{
    readonly name: string
    readonly purl: string | null
    readonly from: string | null
    readonly to: string | null
  }>
}

interface OneSide {
  readonly name: string
  readonly purl: string | null
  readonly version: string | null
}

export interface FindingChanges {
  readonly came: List<FindingChange>
  readonly went: List<FindingChange>
  readonly changed: List<FindingChange>
}

interface FindingChange {
  readonly id: string
  readonly package: string
  readonly from: FindingSide | null
  readonly to: FindingSide | null
}

interface FindingSide {
  readonly severity: string
  readonly installedVersions: readonly string[]
  readonly fixedVersions: readonly string[]
}

export interface SignatureOfImage {
  readonly digest: string
  readonly verdict: string | null
  readonly reason: string | null
  readonly signers: readonly { readonly san?: string; readonly keyName?: string; readonly keyFingerprint?: string }[]
}

/** A file that ran, or a part of its path. */
export interface RunFile {
  readonly kind: string
  readonly path: string
  readonly pathComplete: boolean
}

export const rowOf = (
  part: string,
  change: string,
  what: string,
  before: string | null = null,
  after: string | null = null,
  name = what,
): Row => ({ part, change, what, before, after, name })

const componentName = ({ purl, name }: { purl: string | null; name: string }): string => purl ?? name

export const componentRows = ({ added, removed, changed }: ComponentChanges): Row[] => [
  ...added.items.map((item) => rowOf('components', 'added', componentName(item), null, item.version)),
  ...removed.items.map((item) => rowOf('components', 'removed', componentName(item), item.version)),
  ...changed.items.map((item) => rowOf('components', 'changed', componentName(item), item.from, item.to)),
]

export const findingRows = ({ came, went, changed }: FindingChanges): Row[] => [
  ...came.items.map((item) => findingRow('came', item)),
  ...went.items.map((item) => findingRow('went', item)),
  ...changed.items.map((item) => findingRow('changed', item)),
]

const findingRow = (change: string, { id, package: name, from, to }: FindingChange): Row =>
  rowOf('findings', change, `${id} ${name}`, from && findingText(from), to && findingText(to), id)

function findingText({ severity, installedVersions, fixedVersions }: FindingSide): string {
  const fix = fixedVersions.length > 0 ? `, fixed in ${fixedVersions.join(' ')}` : ''
  return `${severity} in ${installedVersions.join(' ')}${fix}`
}

export function signatureText({ verdict, reason, signers }: SignatureOfImage): string {
  const who = signers.map(({ san, keyName, keyFingerprint }) => san || keyName || keyFingerprint || 'unknown')
  const why = reason === null ? '' : ` (${reason})`
  return `${verdict ?? 'not checked'}${why}${who.length > 0 ? ` by ${who.join(', ')}` : ''}`
}

export const fileText = ({ kind, path, pathComplete }: RunFile): string =>
  `${kind} ${pathComplete ? path : `...${path}`}`

export const digestTexts = (digests: readonly string[]): string | null =>
  digests.length === 0 ? null : digests.map(shortDigest).join(' ')

/** Says which lists are cut, by what they are lists of. */
export const cutTexts = (lists: Readonly<Record<string, List<unknown> | null | undefined>>): string[] =>
  Object.entries(lists).flatMap(([name, list]) =>
    list?.truncated ? [`${name}: ${list.items.length} of ${list.total} are listed`] : [],
  )
