/** CiliumNetworkPolicy of cilium.io/v2, as the documentation of Cilium and of its API describes it. */
import type { z } from 'zod'
import type { Slice } from '../../event-loop/slices.ts'
import { type Direction, NAMESPACE_NAME, type Policy, type Rule, type Selector } from '../policy.ts'
import { split } from './cilium-labels.ts'
import { readPeers } from './cilium-peers.ts'
import { readIcmps, readPorts } from './cilium-ports.ts'
import { RULES, type Section, type SentIcmp, SpecSchema } from './cilium-schemas.ts'
import { mapInSlices } from './in-slices.ts'
import type { Named } from './kubernetes.ts'
import { at, type Place, read, refuse } from './place.ts'

type Spec = z.output<typeof SpecSchema>

const SECTIONS = ['ingress', 'ingressDeny', 'egress', 'egressDeny'] as const

/** The policy of a `spec` or of a member of `specs`. 400 names the place and the rule. */
export async function readCiliumPolicy(named: Named, sent: unknown, place: Place, slice: Slice): Promise<Policy> {
  const spec = read(SpecSchema, sent, place)
  if (spec.nodeSelector !== undefined && spec.nodeSelector !== null)
    refuse(at(place, 'nodeSelector'), 'expected endpointSelector: only CiliumClusterwideNetworkPolicy selects nodes')
  if (!spec.endpointSelector) refuse(at(place, 'endpointSelector'), 'expected a selector')
  if (SECTIONS.every((section) => !spec[section])) refuse(place, `expected one of ${SECTIONS.join(', ')}`)
  const { subject, ignored } = readSubject(spec.endpointSelector, named.namespace, at(place, 'endpointSelector'))
  const directionOf = async (name: 'ingress' | 'egress') =>
    whereSelected(await readDirection(spec, name, place, slice), ignored, at(place, 'endpointSelector'))
  const ingress = await directionOf('ingress')
  const egress = await directionOf('egress')
  return { kind: 'CiliumNetworkPolicy', ...named, subject, ingress, egress }
}

/** "EndpointSelector always applies in namespace of the policy resource": Cilium calls labels of others illegal. */
function readSubject(
  selector: Selector,
  namespace: string,
  place: Place,
): { readonly subject: Selector; readonly ignored: string | null } {
  const parts = split(selector)
  if (parts.reason !== null) refuse(place, `expected labels of pods: ${parts.reason}`)
  for (const { key, operator, values } of parts.namespaces) {
    if (key !== NAMESPACE_NAME) refuse(place, 'expected labels of pods: those of namespaces are not known')
    const isHere =
      operator === 'In' || operator === 'NotIn'
        ? values.includes(namespace) === (operator === 'In')
        : operator === 'Exists'
    if (!isHere) refuse(place, `expected pods of ${namespace}, the namespace of the policy`)
  }
  return { subject: parts.pods, ignored: parts.ignored }
}

/** Where it is not known whether a policy selects a pod, nor is what the policy allows or denies. */
const whereSelected = (direction: Direction | null, unknown: string | null, { path }: Place): Direction | null => {
  if (direction === null || unknown === null) return direction
  const uncertain = (rules: readonly Rule[]) => rules.map((one) => ({ ...one, unknown }))
  return {
    ...direction,
    allow: uncertain([...direction.allow, { path, peers: null, ports: null, unknown }]),
    deny: uncertain(direction.deny),
  }
}

async function readDirection(
  spec: Spec,
  direction: 'ingress' | 'egress',
  place: Place,
  slice: Slice,
): Promise<Direction | null> {
  const deny = direction === 'ingress' ? 'ingressDeny' : 'egressDeny'
  const sent = { allow: spec[direction] ?? [], deny: spec[deny] ?? [] }
  const read = {
    allow: await readRules(sent.allow, direction, at(place, direction), slice),
    deny: await readRules(sent.deny, deny, at(place, deny), slice),
  }
  const hasRules = sent.allow.length > 0 || sent.deny.length > 0
  // "If omitted or empty, this rule does not apply at ingress", unless `enableDefaultDeny` says so.
  const isIsolating = spec.enableDefaultDeny?.[direction] ?? hasRules
  if (isIsolating) return read
  return hasRules ? { ...read, isWithoutDefaultDeny: true } : null
}

async function readRules(sent: readonly unknown[], section: Section, place: Place, slice: Slice): Promise<Rule[]> {
  let hasRequires = false
  const rules = await mapInSlices(sent, slice, async (one, i) => {
    const rule = read(RULES[section], one, at(place, i)) as Readonly<Record<string, unknown>>
    const requires = (rule.fromRequires ?? rule.toRequires ?? []) as readonly unknown[]
    hasRequires ||= requires.length > 0
    return readRule(rule, section, at(place, i), slice)
  })
  // "The effects of any Requires field in any rule will apply to all other rules as well."
  const reason = `${section.startsWith('ingress') ? 'fromRequires' : 'toRequires'} is not evaluated`
  return rules.flat().map((rule) => (hasRequires ? { ...rule, unknown: rule.unknown ?? reason } : rule))
}

/** A rule, and one for each member of `toPorts` that only a part of the connections may pass. */
async function readRule(
  rule: Readonly<Record<string, unknown>>,
  section: Section,
  place: Place,
  slice: Slice,
): Promise<Rule[]> {
  const toPorts = (rule.toPorts ?? []) as readonly unknown[]
  const icmps = (rule.icmps ?? []) as readonly SentIcmp[]
  if (toPorts.length > 0 && icmps.length > 0) refuse(at(place, 'icmps'), 'expected no icmps beside toPorts')
  const sentPeers = await readPeers(rule, section.startsWith('ingress') ? 'from' : 'to', place, slice)
  const hasPorts = toPorts.length > 0 || icmps.length > 0
  // A rule without any field selects no peer, which is how default deny is written.
  const peers = sentPeers ?? (hasPorts ? null : [])
  const { mode } = (rule.authentication ?? { mode: 'disabled' }) as { readonly mode: string }
  const unknown = mode === 'disabled' ? null : 'authentication of the peer'
  if (!hasPorts) return [{ path: place.path, peers, ports: null, unknown }]
  const members = await readPorts(toPorts, section.endsWith('Deny'), at(place, 'toPorts'), slice)
  const plain = members.filter((one) => one.unknown === null)
  const others = members.filter((one) => one.unknown !== null)
  const rules = others.map((one) => ({ path: one.place.path, peers, ports: one.ports, unknown: one.unknown }))
  const ports = [...plain.flatMap((one) => one.ports), ...readIcmps(icmps)]
  return plain.length > 0 || icmps.length > 0 ? [{ path: place.path, peers, ports, unknown }, ...rules] : rules
}
