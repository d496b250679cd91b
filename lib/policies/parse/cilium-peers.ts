/** The peers of a rule of Cilium: its `from...` or `to...` fields. */
import { z } from 'zod'
import type { Slice } from '../../event-loop/slices.ts'
import { type Block, hasBlock, parseBlock, parseBlockOrAddress, textOfBlock } from '../block.ts'
import type { Peer } from '../policy.ts'
import { endpointsOf } from './cilium-labels.ts'
import { CidrRule, EndpointSelector, OTHER_PEERS } from './cilium-schemas.ts'
import { mapInSlices } from './in-slices.ts'
import { at, type Place, read, refuse } from './place.ts'

type Read = (sent: readonly unknown[], place: Place, slice: Slice) => Promise<readonly Peer[]>

/** Maps each member to a peer. */
const each =
  (map: (one: unknown, place: Place) => Peer): Read =>
  (sent, place, slice) =>
    mapInSlices(sent, slice, (one, i) => map(one, at(place, i)))

/** Validates the members, of which cannot be told what they match. */
const unknown =
  (schema: z.ZodType, reason: string): Read =>
  async (sent, place, slice) => {
    await mapInSlices(sent, slice, (one, i) => read(schema, one, at(place, i)))
    return [{ kind: 'unknown', reason }]
  }

/** Each field by its name without `from` or `to`. Where `isNoneIfEmpty`, an empty list matches nothing. */
const FIELDS: Readonly<Record<string, { readonly read: Read; readonly isNoneIfEmpty: boolean }>> = {
  Endpoints: { read: each((one, place) => endpointsOf(read(EndpointSelector, one, place))), isNoneIfEmpty: true },
  CIDR: { read: each((one, place) => blockPeer(readBlock(one, place, parseBlockOrAddress))), isNoneIfEmpty: true },
  CIDRSet: { read: each(readCidrRule), isNoneIfEmpty: true },
  Entities: { read: readEntities, isNoneIfEmpty: true },
  Nodes: { read: unknown(OTHER_PEERS.Nodes, 'labels of nodes are not known'), isNoneIfEmpty: true },
  Groups: {
    read: unknown(OTHER_PEERS.Groups, 'the addresses of a group of a cloud provider are not known'),
    isNoneIfEmpty: false,
  },
  Services: {
    read: unknown(OTHER_PEERS.Services, 'the endpoints that Cilium selects by service are not known'),
    isNoneIfEmpty: false,
  },
  FQDNs: { read: unknown(OTHER_PEERS.FQDNs, 'the addresses of a DNS name are not known'), isNoneIfEmpty: false },
}

/** The peers of a rule; null where it has no such field, which matches everyone if it has ports. */
export async function readPeers(
  rule: Readonly<Record<string, unknown>>,
  side: 'from' | 'to',
  place: Place,
  slice: Slice,
): Promise<readonly Peer[] | null> {
  const fields = Object.entries(FIELDS).flatMap(([suffix, field]) => {
    const name = `${side}${suffix}`
    const sent = (rule[name] ?? null) as readonly unknown[] | null
    return sent === null || (sent.length === 0 && !field.isNoneIfEmpty) ? [] : [{ name, sent, read: field.read }]
  })
  const filled = fields.filter(({ sent }) => sent.length > 0)
  // "Only one of these members may be present within an individual rule": Cilium does not apply such a policy.
  if (filled.length > 1) refuse(place, `expected only one of ${filled.map(({ name }) => name).join(', ')}`)
  if (fields.length === 0) return null
  const [only] = filled
  const peers = only === undefined ? [] : await only.read(only.sent, at(place, only.name), slice)
  return fields.length > filled.length ? [] : peers
}

function readBlock(sent: unknown, place: Place, parse: (text: string) => Block | null): Block {
  const block = parse(read(z.string(), sent, place))
  const form = parse === parseBlock ? 'a CIDR such as 10.0.0.0/8' : 'an address or a CIDR such as 10.0.0.0/8'
  return block ?? refuse(place, `expected ${form}`)
}

/** "Only connections which do *not* originate from the cluster or from the local host are subject to CIDR rules." */
const blockPeer = (block: Block, except: readonly Block[] = []): Peer => ({
  kind: 'block',
  cidr: textOfBlock(block),
  except: except.map(textOfBlock),
  isForPods: false,
})

function readCidrRule(sent: unknown, place: Place): Peer {
  const { cidr, except, cidrGroupRef, cidrGroupSelector } = read(CidrRule, sent, place)
  const given = [cidr, cidrGroupRef, cidrGroupSelector].filter((one) => one !== null && one !== undefined)
  if (given.length !== 1) refuse(place, 'expected one of cidr, cidrGroupRef, cidrGroupSelector')
  if (typeof cidr !== 'string') return { kind: 'unknown', reason: 'the addresses of a CiliumCIDRGroup are not known' }
  const block = readBlock(cidr, at(place, 'cidr'), parseBlock)
  const excepted = (except ?? []).map((one, i) => {
    const inner = readBlock(one, at(place, 'except', i), parseBlock)
    return hasBlock(block, inner) ? inner : refuse(at(place, 'except', i), `expected a part of ${textOfBlock(block)}`)
  })
  return blockPeer(block, excepted)
}

const KNOWN_ENTITIES: readonly string[] = ['world', 'cluster', 'all']
const UNKNOWN_ENTITIES: Readonly<Record<string, string>> = {
  host: 'which node a pod runs on is not known to rules about host',
  'remote-node': 'which node a pod runs on is not known to rules about remote-node',
  'kube-apiserver': 'the addresses of the API server are not known',
  ingress: "the addresses of Cilium's ingress are not known",
  health: "the addresses of Cilium's health checks are not known",
  init: 'whether a pod is still initializing is not known',
  unmanaged: 'which pods Cilium does not manage is not known',
  'world-ipv4': 'world-ipv4 matches only one family of addresses',
  'world-ipv6': 'world-ipv6 matches only one family of addresses',
}
const Entity = z.enum([...KNOWN_ENTITIES, ...Object.keys(UNKNOWN_ENTITIES), 'none'])

async function readEntities(sent: readonly unknown[], place: Place, slice: Slice): Promise<readonly Peer[]> {
  const entities = new Set(await mapInSlices(sent, slice, (one, i) => read(Entity, one, at(place, i))))
  const peers: Peer[] = []
  // One of them alone depends on the node of the pod.
  if (entities.has('host') && entities.has('remote-node')) {
    entities.delete('host')
    entities.delete('remote-node')
    peers.push({ kind: 'nodes' })
  }
  for (const one of entities) {
    if (KNOWN_ENTITIES.includes(one)) peers.push({ kind: one as 'world' | 'cluster' | 'all' })
    else if (one !== 'none') peers.push({ kind: 'unknown', reason: UNKNOWN_ENTITIES[one]! })
  }
  return peers
}
