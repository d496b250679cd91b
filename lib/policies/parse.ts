/** Reads network policies as people post them: what they apply with kubectl, or have from `kubectl get`. */
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import { isObject, type JsonObject } from '../json/objects.ts'
import { readCiliumPolicy } from './parse/cilium.ts'
import { mapInSlices } from './parse/in-slices.ts'
import { parseJsonDocument } from './parse/json.ts'
import { type Named, readNetworkPolicy } from './parse/kubernetes.ts'
import { readMetadata } from './parse/metadata.ts'
import { at, list, type Place, read, refuse, strict } from './parse/place.ts'
import { parseYaml } from './parse/yaml.ts'
import type { Policy } from './policy.ts'

/** Most policies in one text. Each item of a list and each of `specs` is one. */
export const MAX_POLICIES = 500

export const POLICY_FORMATS = ['yaml', 'json'] as const
export type PolicyFormat = (typeof POLICY_FORMATS)[number]

/**
 * The policies of a text of at most 1 MiB (docs/contract.md#network-policies): a stream of YAML documents or one JSON
 * document, each a NetworkPolicy (networking.k8s.io/v1), a CiliumNetworkPolicy (cilium.io/v2) or a list of them. YAML
 * documents without content are skipped and not counted. 400 for whatever the API server would refuse, with the
 * document, the path and the rule, such as `document 2: spec.ingress[0].ports[0].port: expected a port, 1 to 65535`;
 * for no policy at all; and for more than `MAX_POLICIES`. 413 for JSON with more keys or values than any body may have.
 * Works in slices of the event loop.
 */
export async function parsePolicies(text: string, format: PolicyFormat): Promise<Policy[]> {
  const slice = new Slice()
  const documents = format === 'json' ? [await parseJsonDocument(text, slice)] : await parseYaml(text, slice)
  const policies: Policy[] = []
  for (const [i, document] of documents.entries()) {
    if (slice.isOver) await slice.next()
    const place: Place = { document: i + 1, path: '' }
    for (const one of objectsOf(document, place)) {
      policies.push(...(await readPolicies(one, MAX_POLICIES - policies.length, slice)))
    }
  }
  if (policies.length === 0) throw new HttpError(400, 'expected at least one policy')
  return policies
}

/** A policy as sent, with the kind and version that its list implies. */
interface Sent {
  readonly object: unknown
  readonly place: Place
  readonly implied: Kind | null
}

interface Kind {
  readonly apiVersion: string
  readonly kind: string
}

const NETWORK_POLICY: Kind = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' }
const CILIUM_POLICY: Kind = { apiVersion: 'cilium.io/v2', kind: 'CiliumNetworkPolicy' }

/** Lists, and the kind of their items where those need not say it. */
const LISTS: readonly (Kind & { readonly item: Kind | null })[] = [
  { apiVersion: 'v1', kind: 'List', item: null },
  ...[NETWORK_POLICY, CILIUM_POLICY].map((item) => ({ ...item, kind: `${item.kind}List`, item })),
]
const KNOWN = [NETWORK_POLICY, CILIUM_POLICY, ...LISTS].map(({ apiVersion, kind }) => `${kind} (${apiVersion})`)

const ListSchema = strict({ apiVersion: z.string(), kind: z.string(), metadata: z.unknown().optional(), items: list })

function objectsOf(document: unknown, place: Place): Sent[] {
  const found = isObject(document) ? LISTS.find((one) => isOfKind(document, one)) : undefined
  if (found === undefined) return [{ object: document, place, implied: null }]
  const { items } = read(ListSchema, document, place)
  if (items.length > MAX_POLICIES) refuse(at(place, 'items'), TOO_MANY)
  return items.map((object, i) => ({ object, place: at(place, 'items', i), implied: found.item }))
}

const TOO_MANY = `expected at most ${MAX_POLICIES} policies`

const isOfKind = (object: JsonObject, { apiVersion, kind }: Kind) =>
  object.apiVersion === apiVersion && object.kind === kind

const common = {
  apiVersion: z.unknown().optional(),
  kind: z.unknown().optional(),
  metadata: z.unknown().optional(),
  spec: z.unknown().optional(),
  status: z.unknown().optional(),
}
const NetworkPolicyObject = strict(common)
const CiliumObject = strict({ ...common, specs: list.nullish() })

async function readPolicies({ object, place, implied }: Sent, left: number, slice: Slice): Promise<Policy[]> {
  if (left === 0) refuse(place, TOO_MANY)
  if (!isObject(object)) refuse(place, 'expected an object')
  const sent = implied === null ? object : { ...implied, ...object }
  if (isOfKind(sent, NETWORK_POLICY)) {
    const { metadata, spec } = read(NetworkPolicyObject, sent, place)
    const named = nameOf(metadata, place)
    return [await readNetworkPolicy(named, spec, at(place, 'spec'), slice)]
  }
  if (!isOfKind(sent, CILIUM_POLICY)) refuseKind(sent, place)
  const { metadata, spec, specs } = read(CiliumObject, sent, place)
  const named = nameOf(metadata, place)
  const all = [
    ...(isGiven(spec) ? [{ spec, at: at(place, 'spec') }] : []),
    ...(specs ?? []).map((one, i) => ({ spec: one, at: at(place, 'specs', i) })),
  ]
  if (all.length === 0) refuse(place, 'expected spec or specs')
  if (all.length > left) refuse(place, TOO_MANY)
  return mapInSlices(all, slice, (one) => readCiliumPolicy(named, one.spec, one.at, slice))
}

const isGiven = (value: unknown) => value !== undefined && value !== null

const nameOf = (metadata: unknown, place: Place): Named => ({
  ...readMetadata(metadata, at(place, 'metadata')),
  document: place.document,
})

function refuseKind({ apiVersion, kind }: JsonObject, place: Place): never {
  const known = KNOWN.join(', ')
  if (typeof kind !== 'string' || kind === '') refuse(at(place, 'kind'), `expected one of ${known}`)
  if (typeof apiVersion !== 'string') refuse(at(place, 'apiVersion'), 'expected a string')
  refuse(at(place, 'kind'), `${shown(kind)} (${shown(apiVersion)}) is not known, expected one of ${known}`)
}

const MAX_SHOWN_CHARS = 80
const shown = (text: string) => text.slice(0, MAX_SHOWN_CHARS)
