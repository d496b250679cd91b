/** NetworkPolicy of networking.k8s.io/v1, as the documentation of its API describes it ("NetworkPolicySpec v1"). */
import { z } from 'zod'
import type { Slice } from '../../event-loop/slices.ts'
import { listOf } from '../../http/request/first-fault.ts'
import { hasBlock, parseBlock, textOfBlock } from '../block.ts'
import type { Direction, Peer, Policy, PortRange, Rule } from '../policy.ts'
import { isPortName, MAX_PORT, PORT_NAME, selector } from './fields.ts'
import { mapInSlices } from './in-slices.ts'
import { at, list, MAX_MEMBERS, type Place, read, strict } from './place.ts'

const Spec = strict({
  podSelector: selector.nullish(),
  policyTypes: listOf(z.enum(['Ingress', 'Egress']), 2).nullish(),
  ingress: list.nullish(),
  egress: list.nullish(),
})
const IngressRule = strict({ from: list.nullish(), ports: list.nullish() })
const EgressRule = strict({ to: list.nullish(), ports: list.nullish() })

const cidr = z.string().transform((sent, c) => {
  const block = parseBlock(sent)
  if (block !== null) return block
  c.addIssue({ code: 'custom', message: 'expected a CIDR such as 10.0.0.0/8' })
  return z.NEVER
})

const ipBlock = strict({ cidr, except: listOf(cidr, MAX_MEMBERS).nullish() }).transform((sent, c): Peer => {
  const except = sent.except ?? []
  const outside = except.findIndex((one) => one.bits === sent.cidr.bits || !hasBlock(sent.cidr, one))
  if (outside >= 0)
    c.addIssue({ code: 'custom', path: ['except', outside], message: `expected a part of ${textOfBlock(sent.cidr)}` })
  return { kind: 'block', cidr: textOfBlock(sent.cidr), except: except.map(textOfBlock), isForPods: true }
})

const PeerSchema = strict({
  podSelector: selector.nullish(),
  namespaceSelector: selector.nullish(),
  ipBlock: ipBlock.nullish(),
}).transform(({ podSelector, namespaceSelector, ipBlock: block }, c): Peer => {
  const hasSelector = Boolean(podSelector ?? namespaceSelector)
  if (block && !hasSelector) return block
  if (block) c.addIssue({ code: 'custom', message: 'expected no selector beside ipBlock' })
  else if (!hasSelector) c.addIssue({ code: 'custom', message: 'expected podSelector, namespaceSelector or ipBlock' })
  // "Otherwise it selects all pods in the namespaces selected by namespaceSelector", and without that "in the policy's
  // own namespace"; "if present but empty, it selects all namespaces".
  return { kind: 'pods', namespaces: namespaceSelector ?? null, pods: podSelector ?? [] }
})

const portNumber = z.int().refine((port) => port >= 1 && port <= MAX_PORT, `expected a port, 1 to ${MAX_PORT}`)
const portName = z.string().transform((name, c) => {
  if (isPortName(name)) return name
  const message = /^\d+$/.test(name) ? `expected ${name} without quotes, or a port name` : `expected ${PORT_NAME}`
  c.addIssue({ code: 'custom', message })
  return z.NEVER
})

const Port = strict({
  protocol: z.enum(['TCP', 'UDP', 'SCTP']).nullish(),
  port: z
    .unknown()
    .optional()
    .transform((sent, c) => {
      if (sent === undefined || sent === null) return null
      const { data, error } = (typeof sent === 'string' ? portName : portNumber).safeParse(sent)
      if (!error) return data
      const message = typeof sent === 'number' ? `expected a port, 1 to ${MAX_PORT}` : error.issues[0]!.message
      c.addIssue({ code: 'custom', message: isOfType(sent) ? message : 'expected a number or a port name' })
      return z.NEVER
    }),
  endPort: portNumber.nullish(),
}).transform(({ protocol, port, endPort }, c): PortRange => {
  if (typeof endPort === 'number') {
    // "This field cannot be defined if the port field is not defined or if the port field is defined as a named port."
    const isRange = typeof port === 'number'
    const message = isRange ? 'expected at least port' : 'expected no endPort: port is not a number'
    if (!isRange || endPort < port) c.addIssue({ code: 'custom', path: ['endPort'], message })
  }
  return { protocol: protocol ?? 'TCP', port, endPort: endPort ?? null }
})

const isOfType = (port: unknown) => typeof port === 'number' || typeof port === 'string'

export type Named = Pick<Policy, 'namespace' | 'name' | 'document'>

/** The policy of a `spec`. 400 names the place and the rule. */
export async function readNetworkPolicy(named: Named, sent: unknown, place: Place, slice: Slice): Promise<Policy> {
  const spec = read(Spec, sent, place)
  const types = spec.policyTypes ?? []
  // "Policies that contain an egress section are assumed to affect egress, and all policies (whether or not they
  // contain an ingress section) are assumed to affect ingress." The API server sees an empty list as none.
  const isEgress = types.length > 0 ? types.includes('Egress') : (spec.egress ?? []).length > 0
  const isIngress = types.length === 0 || types.includes('Ingress')
  // Both are read, because the API server validates rules that have no effect, too.
  const ingress = await readRules(spec.ingress ?? [], 'from', at(place, 'ingress'), slice)
  const egress = await readRules(spec.egress ?? [], 'to', at(place, 'egress'), slice)
  return {
    kind: 'NetworkPolicy',
    ...named,
    subject: spec.podSelector ?? [],
    ingress: isIngress ? ingress : null,
    egress: isEgress ? egress : null,
  }
}

async function readRules(rules: readonly unknown[], side: 'from' | 'to', place: Place, slice: Slice) {
  const allow = await mapInSlices(rules, slice, (rule, i) => readRule(rule, side, at(place, i), slice))
  return { allow, deny: [] } satisfies Direction
}

async function readRule(sent: unknown, side: 'from' | 'to', place: Place, slice: Slice): Promise<Rule> {
  const rule: Partial<Record<'from' | 'to' | 'ports', readonly unknown[] | null | undefined>> =
    side === 'from' ? read(IngressRule, sent, place) : read(EgressRule, sent, place)
  return {
    path: place.path,
    // "If this field is empty or missing, this rule matches all sources", and likewise destinations and ports.
    peers: await membersOrNull(rule[side], PeerSchema, at(place, side), slice),
    ports: await membersOrNull(rule.ports, Port, at(place, 'ports'), slice),
    unknown: null,
  }
}

async function membersOrNull<S extends z.ZodType>(
  sent: readonly unknown[] | null | undefined,
  schema: S,
  place: Place,
  slice: Slice,
): Promise<z.output<S>[] | null> {
  if (!sent || sent.length === 0) return null
  return mapInSlices(sent, slice, (one, i) => read(schema, one, at(place, i)))
}
