/** The ports of a rule of Cilium. */
import type { z } from 'zod'
import type { Slice } from '../../event-loop/slices.ts'
import type { PortRange } from '../policy.ts'
import { PortDenyRule, PortRule, type SentIcmp, type SentPort } from './cilium-schemas.ts'
import { isPortName, MAX_PORT, PORT_NAME } from './fields.ts'
import { mapInSlices } from './in-slices.ts'
import { at, type Place, read, refuse } from './place.ts'

/** Ports that share the reason why it cannot be told whether a connection to them is allowed; null where it can. */
export interface Ports {
  readonly place: Place
  readonly ports: readonly PortRange[]
  readonly unknown: string | null
}

const NO_PORT = { port: null, endPort: null }
const EVERY_PORT: PortRange = { protocol: null, ...NO_PORT }

/** The types of ICMP that a rule has. */
export const readIcmps = (icmps: readonly SentIcmp[]): PortRange[] =>
  icmps.flatMap(({ fields }) =>
    (fields ?? []).map(({ family }) => ({ protocol: family === 'IPv6' ? 'ICMPV6' : 'ICMP', ...NO_PORT })),
  )

/** Reads each member of `toPorts`. */
export const readPorts = (sent: readonly unknown[], isDeny: boolean, place: Place, slice: Slice): Promise<Ports[]> =>
  mapInSlices(sent, slice, (one, i) => readPortRule(one, isDeny, at(place, i)))

function readPortRule(sent: unknown, isDeny: boolean, place: Place): Ports {
  const rule: z.output<typeof PortRule> = isDeny ? read(PortDenyRule, sent, place) : read(PortRule, sent, place)
  const ports = rule.ports ?? []
  // The documentation says that all ports are meant, the code that none is.
  if (ports.length === 0) return { place, ports: [EVERY_PORT], unknown: 'Cilium does not say what no ports mean' }
  return {
    place,
    ports: ports.map((one, i) => readPort(one, at(place, 'ports', i))),
    unknown: isLayer7(rule) ? 'rules of layer 7' : null,
  }
}

function isLayer7({
  rules,
  serverNames,
  listener,
  terminatingTLS,
  originatingTLS,
}: z.output<typeof PortRule>): boolean {
  const hasRules = Object.values(rules ?? {}).some((one) => one !== null && one !== undefined && one !== '')
  return hasRules || (serverNames ?? []).length > 0 || Boolean(listener ?? terminatingTLS ?? originatingTLS)
}

const PORT = /^(?:0|[1-9]\d{0,4})$/

function readPort({ port: sent, endPort: sentEnd, protocol: sentProtocol }: SentPort, place: Place): PortRange {
  const name = sent.toLowerCase()
  const isNumber = PORT.test(sent) && Number(sent) <= MAX_PORT
  if (!isNumber && !isPortName(name)) refuse(at(place, 'port'), `expected "0" to "${MAX_PORT}", or ${PORT_NAME}`)
  const port = isNumber ? Number(sent) : name
  // 0 is how the API in Go writes an absent `endPort`; "EndPort is ignored if Port is a named port".
  const endPort = typeof port === 'string' ? null : sentEnd || null
  if (endPort !== null && typeof port === 'number') {
    if (port === 0) refuse(at(place, 'endPort'), `expected no endPort: port is ${sent}`)
    if (endPort < port) refuse(at(place, 'endPort'), 'expected at least port')
  }
  const protocol = sentProtocol ?? 'ANY'
  if (protocol === 'ANY') return { protocol: null, port: port || null, endPort }
  if (protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP') return { protocol, port: port || null, endPort }
  return {
    protocol: protocol === 'ICMP' ? 'ICMP' : protocol === 'VRRP' || protocol === 'IGMP' ? 'OTHER' : 'ICMPV6',
    ...NO_PORT,
  }
}
