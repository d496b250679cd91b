/** The hits of GET /search (docs/contract.md#search): their records, and the routes that answer more. */
import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/digest.ts'

/** Addresses show so many of the workloads that were seen with them. */
export const MAX_PEERS = 10

/** The fields that keep "not found" apart from "nowhere". */
export const looked = {
  notCovered: z
    .int()
    .min(0)
    .describe('Running images without a report and without an SBOM: what they contain is not found.'),
  notRead: z
    .int()
    .min(0)
    .describe('Payloads that are stored and that nobody has looked at; more than 0 only after many new ones.'),
}

const shared = {
  running: z.boolean().nullable().describe('Whether it runs now; null where that is unknown or has no meaning.'),
  match: z
    .enum(['exact', 'part', 'prefix'])
    .describe('The text itself, another way to name the same or a part between slashes, or the beginning of a name.'),
  href: z.string().describe('A route that answers more, with its query.'),
}
const text = z.string()

export const HITS = {
  vulnerability: z.strictObject({
    type: z.literal('vulnerability'),
    id: text,
    aliases: z.array(text),
    ...shared,
  }),
  package: z.strictObject({
    type: z.literal('package'),
    name: text.nullable().describe('In lower case. Null where a package URL was asked for.'),
    purl: text.nullable().describe('In lower case; without a version, any version.'),
    ...shared,
  }),
  image: z.strictObject({
    type: z.literal('image'),
    digest: digestText,
    repository: text.nullable(),
    tags: z.array(text),
    indexDigest: digestText.nullable().describe('The digest of the index that was asked for.'),
    inInventory: z.boolean().describe('False: only scanners posted it, so nobody knows whether it runs.'),
    ...shared,
  }),
  repository: z.strictObject({ type: z.literal('repository'), repository: text, ...shared }),
  workload: z.strictObject({ type: z.literal('workload'), namespace: text, kind: text, name: text, ...shared }),
  pod: z.strictObject({
    type: z.literal('pod'),
    namespace: text.nullable(),
    name: text,
    node: text,
    address: text,
    workloadKind: text.nullable(),
    workloadName: text.nullable(),
    ...shared,
  }),
  service: z.strictObject({
    type: z.literal('service'),
    namespace: text.nullable(),
    name: text.nullable(),
    address: text,
    ...shared,
  }),
  namespace: z.strictObject({ type: z.literal('namespace'), namespace: text, ...shared }),
  node: z.strictObject({ type: z.literal('node'), name: text, ...shared }),
  address: z.strictObject({
    type: z.literal('address'),
    address: text,
    public: z.boolean(),
    lastNewAt: wireTime.describe('When a flow was last seen for the first time.'),
    peers: z
      .array(z.strictObject({ namespace: text.nullable(), kind: text, name: text.nullable(), flows: z.int().min(1) }))
      .max(MAX_PEERS),
    peerCount: z.int().min(1),
    ...shared,
  }),
} as const
export type HitType = keyof typeof HITS

/** The types, in the order in which equal hits are listed. */
export const TYPES = Object.keys(HITS) as HitType[]

export const Hit = z
  .discriminatedUnion('type', Object.values(HITS) as [(typeof HITS)['package'], ...(typeof HITS)['package'][]])
  .meta({ id: 'SearchHit' })

const url = (path: readonly string[], parameters: Record<string, string> = {}) => {
  const query = new URLSearchParams(parameters).toString()
  return `/${path.map(encodeURIComponent).join('/')}${query && `?${query}`}`
}

/** A hit as the database has it. */
// biome-ignore lint/suspicious/noExplicitAny: an object of JSON that its `type` describes.
type Found = any

/** The route that answers more about a hit. */
export const HREFS: { readonly [T in HitType]: (hit: Found) => string } = {
  vulnerability: ({ id }) => url(['vulnerabilities', id, 'exposure']),
  package: ({ name, purl }) => url(['components'], purl === null ? { name } : { purl }),
  image: ({ digest, inInventory }) => url(inInventory ? ['images', digest] : ['images', digest, 'vulnerabilities']),
  repository: ({ repository }) => url(['images'], { repository }),
  workload: ({ namespace, kind, name }) => url(['workloads', namespace, kind, name, 'containers']),
  pod: ({ name }) => url(['pod', 'name', name]),
  service: ({ address }) => url(['svc', 'ip', address]),
  namespace: ({ namespace }) => url(['workloads'], { namespace }),
  node: ({ name }) => url(['pod', 'list', name]),
  address: ({ address }) => url(['flows'], { ip: address }),
}
