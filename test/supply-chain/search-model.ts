/** A naive model of search and of the list of components, from docs/contract.md#search and #joins alone. */

export interface Row {
  readonly name: string
  readonly version: string | null
  readonly purl: string | null
  readonly type: string | null
}
export type Kind = 'sbom' | 'vulnerabilities'
/** How a payload names an image: by its own digest, by its index, as a platform of its own, by a tag, or not at all. */
export type Via = 'own' | 'index' | 'manifest' | 'tag' | 'none'

export interface Payload {
  readonly digest: string
  readonly source: string
  readonly kind: Kind
  readonly via: Via
  /** The image that it names. */
  readonly image: string
  readonly rows: readonly Row[]
}
export interface Container {
  readonly namespace: string
  readonly kind: string
  readonly workload: string
  readonly name: string
  readonly runs: boolean
}
export interface Image {
  readonly digest: string
  readonly repository: string | null
  readonly tags: readonly string[]
  readonly containers: readonly Container[]
}
export interface Pod {
  readonly namespace: string
  readonly name: string
  readonly node: string
  readonly isDead: boolean
}
export interface Service {
  readonly namespace: string
  readonly name: string
  readonly address: string
}
/** Payloads in the order of their scans. */
export interface Store {
  readonly images: readonly Image[]
  readonly payloads: readonly Payload[]
  readonly pods: readonly Pod[]
  readonly services: readonly Service[]
}

export const lower = (text: string) => [...text].map((c) => (c >= 'A' && c <= 'Z' ? c.toLowerCase() : c)).join('')
export const artifact = (name: string) => (name.includes(':') ? lower(name.split(':').at(-1)!) || null : null)
const compared = (purl: string) =>
  lower(purl).split('%40').join('@').split('%2b').join('+').split('%3a').join(':').split('%7e').join('~')
const plain = (purl: string) => /^[^?#]*/.exec(compared(purl))![0]
const split = (purl: string): [base: string, version: string | null] => {
  const text = plain(purl)
  for (let i = 1; i < text.length; i++)
    if (text[i] === '@' && text[i - 1] !== '/') return [text.slice(0, i), text.slice(i + 1)]
  return [text, null]
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
const runs = (image: Image) => image.containers.some((one) => one.runs)

const JOINS = {
  own: 'image_id',
  index: 'platform_manifest',
  manifest: 'platform_manifest',
  tag: 'workload_tag',
} as const
type Joined = Payload & { readonly via: keyof typeof JOINS }

/** The payloads of a kind that stand for an image. */
function answering({ payloads }: Store, { digest }: Image, kind: Kind): Joined[] {
  const named = payloads.filter((one) => one.image === digest && one.via !== 'none') as Joined[]
  const isNamedByDigest = named.some(({ via }) => via !== 'tag')
  return [...new Set(named.map(({ source }) => source))].flatMap((source) => {
    const of = (via: Via) => named.filter((one) => one.source === source && one.kind === kind && one.via === via)
    if (of('own').length > 0) return of('own')
    const exact = [...of('index'), ...of('manifest').slice(-1)]
    return exact.length > 0 ? exact : isNamedByDigest ? [] : of('tag').slice(-1)
  })
}

interface Held extends Row {
  readonly evidence: 'sbom' | 'findings'
  readonly image: Image
  readonly payload: Joined
}

/** All packages of all images. */
const held = (store: Store): Held[] =>
  store.images.flatMap((image) =>
    (['sbom', 'vulnerabilities'] as const).flatMap((kind) =>
      answering(store, image, kind).flatMap((payload) =>
        payload.rows.map((row) => ({
          ...{ ...row, image, payload },
          evidence: kind === 'sbom' ? ('sbom' as const) : ('findings' as const),
        })),
      ),
    ),
  )

const purlNames = (base: string) => {
  const [, ...path] = base.slice('pkg:'.length).split('/')
  const name = path.pop()
  if (name === undefined || name === '') return []
  return path.length === 0 ? [name] : [name, `${path.join('/')}/${name}`, `${path.join('/')}:${name}`]
}
const isNamed = ({ name }: Row, names: readonly string[]) =>
  names.includes(lower(name)) || names.includes(artifact(name) ?? '\0')

export interface Asked {
  readonly name?: string
  readonly purl?: string
  readonly version?: string
  readonly running?: boolean
}

function isAsked(row: Row, { name, purl, version }: Asked): boolean {
  if (name !== undefined && !isNamed(row, [lower(name)])) return false
  if (version !== undefined && row.version !== version) return false
  if (purl === undefined) return true
  const [base, of] = split(purl)
  if (row.purl === null) return isNamed(row, purlNames(base)) && (of === null || row.version === of)
  if (of === null) return split(row.purl)[0] === base
  const isQualified = compared(purl) !== plain(purl)
  return (
    plain(row.purl) === plain(purl) &&
    (!isQualified || compared(row.purl) === compared(purl) || compared(row.purl) === plain(row.purl))
  )
}

/** The items of GET /components, in order, without the fields about use. */
export function componentsOf(store: Store, asked: Asked) {
  const rows = held(store).filter((one) => isAsked(one, asked))
  const kept = rows.filter(
    (one) =>
      one.evidence === 'sbom' ||
      !rows.some(
        (other) =>
          other.evidence === 'sbom' &&
          other.image === one.image &&
          other.name === one.name &&
          other.version === one.version,
      ),
  )
  const keyOf = ({ image, name, version, purl, type }: Held) =>
    JSON.stringify([image.digest, name, version, purl, type])
  const items = [...new Set(kept.map(keyOf))].map((key) => {
    const group = kept.filter((one) => keyOf(one) === key)
    const { name, version, purl, type, evidence, image } = group[0]!
    const joins = group.map(({ payload }) => JOINS[payload.via])
    return {
      ...{ name, version, purl, type, evidence, imageDigest: image.digest, repository: image.repository },
      tags: image.tags,
      running: runs(image),
      join: Object.values(JOINS).find((join) => joins.includes(join))!,
      sources: [...new Set(group.map(({ payload }) => payload.source))].sort(),
      workloads: workloadsOf(image),
      workloadCount: workloadsOf(image).length,
    }
  })
  const last = (text: string | null) => text ?? '\u{10ffff}'
  return items
    .filter(({ running }) => asked.running === undefined || running === asked.running)
    .sort(
      (a, b) =>
        Number(b.running) - Number(a.running) ||
        byBytes(a.imageDigest, b.imageDigest) ||
        byBytes(a.name, b.name) ||
        byBytes(last(a.version), last(b.version)) ||
        byBytes(last(a.purl), last(b.purl)) ||
        byBytes(last(a.type), last(b.type)),
    )
}

function workloadsOf({ containers }: Image) {
  const keyOf = ({ namespace, kind, workload }: Container) => JSON.stringify([namespace, kind, workload])
  return [...new Set(containers.map(keyOf))]
    .map((key) => {
      const group = containers.filter((one) => keyOf(one) === key)
      const { namespace, kind, workload: name } = group[0]!
      return { clusterId: 'primary', namespace, kind, name, running: group.some((one) => one.runs) }
    })
    .sort(
      (a, b) =>
        Number(b.running) - Number(a.running) ||
        byBytes(a.namespace, b.namespace) ||
        byBytes(a.kind, b.kind) ||
        byBytes(a.name, b.name),
    )
}

export const notCovered = (store: Store) =>
  store.images.filter(
    (image) =>
      runs(image) && answering(store, image, 'sbom').length + answering(store, image, 'vulnerabilities').length === 0,
  ).length

type Match = 'exact' | 'part' | 'prefix'
/** A hit in short: its type, the key of its type, whether it runs, and how close it is. */
export type Short = readonly [type: string, key: string, running: boolean | null, match: Match]

const TYPES = 'vulnerability package image repository workload pod service namespace node address'.split(' ')
const MATCHES: readonly Match[] = ['exact', 'part', 'prefix']

/** The hits of GET /search in order, where no type is cut. */
export function hitsOf(store: Store, query: string): Short[] {
  const found: Short[] = []
  const text = query.trim()
  const matchOf = (name: string | null, asked: string): Match | null =>
    name === null ? null : name === asked ? 'exact' : text.length >= 2 && name.startsWith(asked) ? 'prefix' : null
  const add = (type: string, key: string, running: boolean | null, match: Match | null) => {
    if (match === null) return
    const known = found.findIndex(([t, k]) => t === type && k === key)
    if (known < 0) found.push([type, key, running, match])
    else {
      const [, , before, closest] = found[known]!
      const nearer = MATCHES.indexOf(match) < MATCHES.indexOf(closest) ? match : closest
      found[known] = [type, key, before === null ? running : before || running, nearer]
    }
  }
  const all = held(store)
  if (/^pkg:/i.test(text)) {
    const [base, version] = split(text)
    for (const one of all) {
      const [of] = one.purl === null ? [null] : split(one.purl)
      const isOf = of === base || (of === null && isNamed(one, purlNames(base)))
      if (isOf) add('package', base, runs(one.image), version === null ? 'exact' : 'part')
      const isOfVersion = one.purl === null ? isOf && one.version === version : plain(one.purl) === plain(text)
      if (version !== null && isOfVersion) add('package', plain(text), runs(one.image), 'exact')
      if (version === null && of !== null && of !== base) add('package', of, runs(one.image), matchOf(of, base))
    }
  } else {
    for (const { name, image } of all)
      for (const key of [lower(name), artifact(name)])
        if (key !== null) add('package', key, runs(image), matchOf(key, lower(text)))
    findImages(store, text, add)
    findNames(store, text, add, matchOf)
  }
  return found.sort(
    ([aType, aKey, aRuns, aMatch], [bType, bKey, bRuns, bMatch]) =>
      Number(bRuns === true) - Number(aRuns === true) ||
      MATCHES.indexOf(aMatch) - MATCHES.indexOf(bMatch) ||
      TYPES.indexOf(aType) - TYPES.indexOf(bType) ||
      byBytes(aKey, bKey),
  )
}

type Add = (type: string, key: string, running: boolean | null, match: Match | null) => void

function findImages({ images, payloads }: Store, text: string, add: Add): void {
  const digits = /(?:^|@)((?:sha256:|sha512:)?[0-9a-f]{6,128})$/.exec(lower(text))?.[1]
  if (digits !== undefined) {
    const beginnings = digits.includes(':') ? [digits] : [`sha256:${digits}`, `sha512:${digits}`]
    const inventory = (digest: string) => images.find((one) => one.digest === digest)
    const addImage = (digest: string, matched: string) => {
      const image = inventory(digest)
      const match = beginnings.includes(matched)
        ? 'exact'
        : beginnings.some((one) => matched.startsWith(one)) && 'prefix'
      if (match) add('image', digest, image === undefined ? null : runs(image), match)
    }
    for (const { digest } of images) addImage(digest, digest)
    for (const { digest, via, image } of payloads) {
      addImage(digest, digest)
      if (via === 'index') addImage(digest, image)
    }
    if (!text.includes('@')) return
  }
  const [reference] = text.split('@') as [string]
  const at = reference.lastIndexOf(':')
  const [name, tag] = at > reference.lastIndexOf('/') ? [reference.slice(0, at), reference.slice(at + 1)] : [reference]
  const asked = lower(name!).replace(/^\/+|\/+$/g, '')
  if (asked === '') return
  const isWhole = asked.startsWith('docker.io/')
  const spellings = isWhole
    ? [asked, asked.slice(10), asked.replace('docker.io/library/', ''), asked.replace('docker.io/library/', 'library/')]
    : [asked, asked.includes('/') ? `docker.io/${asked}` : `docker.io/library/${asked}`]
  for (const image of images) {
    if (image.repository === null) continue
    const stored = lower(image.repository)
    const match = spellings.includes(stored) ? 'exact' : !isWhole && stored.endsWith(`/${asked}`) ? 'part' : null
    add('repository', image.repository, runs(image), match)
    if (tag !== undefined && image.tags.includes(tag)) add('image', image.digest, runs(image), match)
  }
}

const KINDS: Readonly<Record<string, string>> = {
  deploy: 'deployment',
  deployments: 'deployment',
  po: 'pod',
  ns: 'namespace',
  nodes: 'node',
  svc: 'service',
  services: 'service',
}

function findNames(
  { images, pods, services }: Store,
  text: string,
  add: Add,
  matchOf: (name: string | null, asked: string) => Match | null,
): void {
  const parts = text.split('/')
  if (parts.length > 3 || parts.some((part) => part === '')) return
  const asked = parts.at(-1)!
  const closest = (name: string) =>
    [matchOf(name, asked), matchOf(name, lower(asked))].sort(
      (a, b) =>
        MATCHES.indexOf(a ?? 'prefix') - MATCHES.indexOf(b ?? 'prefix') || Number(a === null) - Number(b === null),
    )[0]!
  const kindOf = (word: string) => KINDS[lower(word)] ?? lower(word)
  // Null is any.
  const readings: [namespace: string | null, kind: string | null][] =
    parts.length === 3
      ? [[parts[0]!, kindOf(parts[1]!)]]
      : parts.length === 2
        ? [
            [parts[0]!, null],
            [null, kindOf(parts[0]!)],
          ]
        : [[null, null]]
  for (const [namespace, kind] of readings) {
    const isOf = (one: { namespace: string }) => namespace === null || one.namespace === namespace
    const isKind = (word: string) => kind === null || kind === word
    for (const one of images.flatMap(({ containers }) => containers))
      if (isOf(one) && isKind(lower(one.kind)))
        add('workload', `${one.namespace}/${one.kind}/${one.workload}`, one.runs, closest(one.workload))
    for (const one of pods) if (isOf(one) && isKind('pod')) add('pod', one.name, !one.isDead, closest(one.name))
    for (const one of services)
      if (isOf(one) && isKind('service')) {
        const key = `${one.namespace}/${one.name}/${one.address}`
        add('service', key, null, closest(one.name))
      }
    const isAnywhere = namespace === null && (kind === null || parts.length === 2)
    if (isAnywhere && isKind('namespace')) {
      for (const { containers } of images)
        for (const one of containers) add('namespace', one.namespace, one.runs, closest(one.namespace))
      for (const one of pods) add('namespace', one.namespace, !one.isDead, closest(one.namespace))
      for (const one of services) add('namespace', one.namespace, false, closest(one.namespace))
    }
    if (isAnywhere && isKind('node'))
      for (const one of pods) if (!one.isDead) add('node', one.node, true, closest(one.node))
  }
}
