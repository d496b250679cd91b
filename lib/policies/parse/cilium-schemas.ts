/** The fields of a CiliumNetworkPolicy, by its custom resource definition and, for older versions, its API in Go. */
import { z } from 'zod'
import { listOf, recordOf } from '../../http/request/first-fault.ts'
import { sourceAndName } from './cilium-labels.ts'
import { dnsSubdomain, MAX_PORT, selectorWith } from './fields.ts'
import { list, MAX_MEMBERS, strict } from './place.ts'

/** `maxItems` of `ports` and `icmps[].fields`. */
const MAX_PORTS = 40
const MAX_ICMP_TYPE = 255
const MAX_SERVER_NAME_CHARS = 255

const string = z.string().nullish()
const strings = listOf(z.string(), MAX_MEMBERS).nullish()
const many = <S extends z.ZodType>(schema: S) => listOf(schema, MAX_MEMBERS).nullish()

/** A selector whose keys may have a source before them, such as `k8s:app`. */
export const EndpointSelector = selectorWith((key) => sourceAndName(key) !== null)

const Secret = strict({ namespace: string, name: z.string() })
const Tls = strict({ secret: Secret, trustedCA: string, certificate: string, privateKey: string }).nullish()
const HeaderMatch = strict({
  name: z.string().min(1, 'expected a name'),
  mismatch: z.enum(['LOG', 'ADD', 'DELETE', 'REPLACE', '']).nullish(),
  secret: Secret.nullish(),
  value: string,
})
const L7Rules = strict({
  http: many(
    strict({ path: string, method: string, host: string, headers: strings, headerMatches: many(HeaderMatch) }),
  ),
  kafka: many(strict({ role: string, apiVersion: string, apiKey: string, clientID: string, topic: string })),
  dns: many(strict({ matchName: string, matchPattern: string })),
  l7proto: string,
  l7: many(recordOf(z.string())),
})

const PORT_RANGE = `expected a port, 0 to ${MAX_PORT}`
const PortProtocol = strict({
  port: z.string(),
  endPort: z.int().min(0, PORT_RANGE).max(MAX_PORT, PORT_RANGE).nullish(),
  protocol: z.enum(['TCP', 'UDP', 'SCTP', 'ANY', 'ICMP', 'ICMPV6', 'ICMPv6', 'VRRP', 'IGMP']).nullish(),
})
export type SentPort = z.output<typeof PortProtocol>

const ports = listOf(PortProtocol, MAX_PORTS).nullish()
export const PortRule = strict({
  ports,
  rules: L7Rules.nullish(),
  terminatingTLS: Tls,
  originatingTLS: Tls,
  serverNames: many(z.string().min(1, 'expected a name').max(MAX_SERVER_NAME_CHARS, 'expected a DNS name')),
  listener: strict({
    envoyConfig: strict({ kind: string, name: z.string() }),
    name: z.string(),
    priority: z.int().nullish(),
  }).nullish(),
})
export const PortDenyRule = strict({ ports })

const isIcmpType = (type: unknown) =>
  typeof type === 'number'
    ? Number.isInteger(type) && type >= 0 && type <= MAX_ICMP_TYPE
    : typeof type === 'string' && /^(?:[A-Za-z ]{1,64}|\d{1,3})$/.test(type)
const icmpType = z.custom(isIcmpType, `expected a type of ICMP: 0 to ${MAX_ICMP_TYPE}, or a name`)
const Icmp = strict({
  fields: listOf(strict({ family: z.enum(['IPv4', 'IPv6']).nullish(), type: icmpType }), MAX_PORTS).nullish(),
})
export type SentIcmp = z.output<typeof Icmp>
const Authentication = strict({ mode: z.enum(['disabled', 'required', 'test-always-fail']) })

const onBothSides = { toPorts: list.nullish(), icmps: many(Icmp) }
const from = {
  ...onBothSides,
  fromEndpoints: list.nullish(),
  fromRequires: many(EndpointSelector),
  fromCIDR: list.nullish(),
  fromCIDRSet: list.nullish(),
  fromEntities: list.nullish(),
  fromGroups: list.nullish(),
  fromNodes: list.nullish(),
}
const to = {
  ...onBothSides,
  toEndpoints: list.nullish(),
  toRequires: many(EndpointSelector),
  toCIDR: list.nullish(),
  toCIDRSet: list.nullish(),
  toEntities: list.nullish(),
  toServices: list.nullish(),
  toGroups: list.nullish(),
  toNodes: list.nullish(),
}
const authentication = Authentication.nullish()

/** The rules of each section. */
export const RULES = {
  ingress: strict({ ...from, authentication }),
  ingressDeny: strict(from),
  egress: strict({ ...to, toFQDNs: list.nullish(), authentication }),
  egressDeny: strict(to),
}
export type Section = keyof typeof RULES

/** Members of fields that cannot be told apart further: they are validated only. */
export const OTHER_PEERS = {
  Groups: strict({
    aws: strict({
      labels: recordOf(z.string()).nullish(),
      securityGroupsIds: strings,
      securityGroupsNames: strings,
      region: string,
    }).nullish(),
  }),
  Nodes: EndpointSelector,
  Services: strict({
    k8sService: strict({ serviceName: string, namespace: string }).nullish(),
    k8sServiceSelector: strict({ selector: EndpointSelector, namespace: string }).nullish(),
  }),
  FQDNs: strict({ matchName: string, matchPattern: string }),
}

export const CidrRule = strict({
  cidr: string,
  except: strings,
  cidrGroupRef: dnsSubdomain.nullish(),
  cidrGroupSelector: EndpointSelector.nullish(),
})

export const SpecSchema = strict({
  endpointSelector: EndpointSelector.nullish(),
  nodeSelector: z.unknown().optional(),
  ingress: list.nullish(),
  ingressDeny: list.nullish(),
  egress: list.nullish(),
  egressDeny: list.nullish(),
  enableDefaultDeny: strict({ ingress: z.boolean().nullish(), egress: z.boolean().nullish() }).nullish(),
  labels: many(strict({ key: z.string(), source: string, value: string, cidr: z.unknown().optional() })),
  description: string,
  log: strict({ value: string }).nullish(),
})
