/**
 * The filter of flows: one object for pages, streams and whatever else selects flows (docs/contract.md#flow-queries).
 * Its SQL is put together from the fixed texts below and takes all values as parameters. It is null where the broker
 * cannot say whether a flow passes.
 */
import { isIP } from 'node:net'
import { z } from 'zod'
import { canonicalAddress } from '../net/address.ts'
import { documentedAs } from '../openapi/declare.ts'

/** Values of one parameter; more are refused. */
export const MAX_VALUES = 64
const MAX_PORT = 65_535
const MAX_VALUE_CHARS = 1_024

/** A value as SQL takes it: a text, or the columns of a record. */
type Value = string | Readonly<Record<string, string | number>>

interface Chosen {
  readonly isExcluded: boolean
  readonly value: Value
}

/** One parameter with all its values. */
export interface Condition {
  readonly subject: Subject
  /** The side that a condition on a side is about. */
  readonly side: Side
  readonly wanted: readonly Value[]
  readonly excluded: readonly Value[]
}

/** All conditions have to hold. */
export type FlowFilter = readonly Condition[]

type Side = 'either' | 'from' | 'to'

/**
 * How a subject compares a flow `t` with the values: SQL with `$values` for the JSON array of the values. `pod` is
 * about the side of the flow's own pod, `peer` about the other one.
 */
type Comparison = { readonly pod: string; readonly peer: string } | { readonly flow: string }

const TEXTS = 'array(select json_array_elements_text($values::text::json))'
const records = (columns: string) => `json_to_recordset($values::text::json) as v(${columns})`

/** Of the labels and the node of a pod, what was known by the time of the flow; no row where nothing was recorded. */
const known = (namespace: string, name: string, what: string) => `(
  select ${what} from pod_labels l
  where l.pod_namespace = ${namespace} and l.pod_name = ${name} and l.since <= t.time_stamp
  order by l.since desc limit 1)`
const ofPod = (what: string) => known('t.pod_namespace', 't.pod_name', what)
const ofPeer = (what: string) => known('t.peer_namespace', 't.peer_name', what)

const isPod = (
  namespace: string,
  name: string,
) => `coalesce(${namespace} is not null and ${name} is not null and exists (
  select from ${records('namespace text, name text, prefix text')}
  where v.namespace = ${namespace} and (v.name = ${name} or starts_with(${name}, v.prefix))), false)`

const PEER_KIND = "case when t.peer_workload_name is null then 'Pod' else t.peer_workload_kind end"
const PEER_WORKLOAD = 'coalesce(t.peer_workload_name, t.peer_name)'
/** Null where the kind and the name are not known and the namespace is one of those asked for. */
const isWorkload = (namespace: string, kind: string, name: string) => `
  ((${namespace}, ${name}) in (select v.namespace, v.name from ${records('namespace text, kind text, name text')}
                               where v.kind is null)
   or (${namespace}, ${kind}, ${name}) in (select v.namespace, v.kind, v.name
                                           from ${records('namespace text, kind text, name text')}
                                           where v.kind is not null))`

/** Reading an address costs far more than comparing its beginning, which settles almost all. */
const hasAddress = (address: string) => `coalesce(
  ${address} in (select v.address from ${records('address text')} where v.address is not null)
  or ${address} like any (array(select v.beginning from ${records('beginning text')} where v.beginning is not null))
     and inet_of(${address}) <<= any (array(select v.network::inet from ${records('network text')}
                                            where v.network is not null)), false)`

const SERVER_PORT = `case t.traffic_type when 'EGRESS' then t.traffic_in_out_port when 'INGRESS' then t.pod_port end`
const HAS_LABEL = `l.labels @> any (array(
    select json_build_object(v.key, v.value)::jsonb from ${records('key text, value text')}))`

const isPort = (port: string) => `case when ${port} ~ '^[0-9]{1,5}$' then exists (
  select from ${records('first int, last int')} where (${port})::int between v.first and v.last) end`

const COMPARISONS = {
  namespace: {
    pod: `coalesce(t.pod_namespace = any (${TEXTS}), false)`,
    peer: `coalesce(t.peer_kind in ('pod', 'service') and t.peer_namespace = any (${TEXTS}), false)`,
  },
  workload: {
    pod: `(t.pod_namespace is not null
      and ${isWorkload('t.pod_namespace', 't.pod_workload_kind', 't.pod_workload_name')})`,
    peer: `coalesce(t.peer_kind = 'pod' and ${isWorkload('t.peer_namespace', PEER_KIND, PEER_WORKLOAD)}, false)`,
  },
  pod: {
    pod: isPod('t.pod_namespace', 't.pod_name'),
    peer: `coalesce(t.peer_kind = 'pod' and ${isPod('t.peer_namespace', 't.peer_name')}, false)`,
  },
  service: {
    pod: 'false',
    peer: `coalesce(t.peer_kind = 'service' and (t.peer_namespace, t.peer_name) in (
      select v.namespace, v.name from ${records('namespace text, name text')}), false)`,
  },
  ip: { pod: hasAddress('t.pod_ip'), peer: hasAddress('t.traffic_in_out_ip') },
  label: {
    pod: ofPod(HAS_LABEL),
    peer: `case when t.peer_kind = 'pod' then ${ofPeer(HAS_LABEL)} else false end`,
  },
  node: {
    pod: ofPod(`l.node_name = any (${TEXTS})`),
    peer: `case when t.peer_kind in ('pod', 'node') then ${ofPeer(`l.node_name = any (${TEXTS})`)} else false end`,
  },
  port: { flow: `coalesce(${isPort(SERVER_PORT)}, false)` },
  protocol: { flow: `coalesce(t.ip_protocol = any (${TEXTS}), false)` },
  verdict: { flow: `coalesce(t.decision = any (${TEXTS}), false)` },
  seen_by: {
    flow: `coalesce(
      case t.traffic_type when 'EGRESS' then 'from' when 'INGRESS' then 'to' end = any (${TEXTS}), false)`,
  },
  peer: {
    flow: `(case when t.peer_kind is not null then t.peer_kind
             when is_public_address(t.traffic_in_out_ip) then 'external' else 'unresolved' end = any (${TEXTS}))`,
  },
  public: { flow: `(coalesce(is_public_address(t.traffic_in_out_ip), false)::text = any (${TEXTS}))` },
} as const satisfies Record<string, Comparison>

export type Subject = keyof typeof COMPARISONS
type Comparisons = Readonly<Record<Subject, Comparison>>

/**
 * The comparisons of an edge, a row `t` of `flow_edge` with the workload and the port behind a service in `via_kind`,
 * `via_name` and `via_port`. Those of a pod, a label, a node and an address need the flows.
 */
export const EDGE_COMPARISONS: Comparisons = {
  ...COMPARISONS,
  workload: {
    pod: COMPARISONS.workload.pod,
    peer: `(${COMPARISONS.workload.peer}
      or coalesce(t.via_name is not null and ${isWorkload('t.peer_namespace', 't.via_kind', 't.via_name')}, false))`,
  },
  port: { flow: `(coalesce(${isPort('t.port')}, false) or coalesce(${isPort('t.via_port')}, false))` },
  peer: {
    flow: `(coalesce(t.peer_kind, case when t.is_public then 'external' else 'unresolved' end) = any (${TEXTS}))`,
  },
  public: { flow: `(t.is_public::text = any (${TEXTS}))` },
}

/** Whether any of the values matches. */
function matches({ subject, side }: Condition, comparisons: Comparisons): string {
  const comparison = comparisons[subject]
  if ('flow' in comparison) return comparison.flow
  const { pod, peer } = comparison
  if (side === 'either') return `(${pod} or ${peer})`
  const [egress, ingress] = side === 'from' ? [pod, peer] : [peer, pod]
  return `case t.traffic_type when 'EGRESS' then ${egress} when 'INGRESS' then ${ingress} else false end`
}

/**
 * The filter as SQL over the row `t` of `traffic`, with `parameter` called for each value that it takes; it returns the
 * placeholder.
 */
export function filterSql(
  filter: FlowFilter,
  parameter: (value: string) => string,
  comparisons: Comparisons = COMPARISONS,
): string {
  const conditions = filter.flatMap((condition) => {
    const text = matches(condition, comparisons)
    const { wanted, excluded } = condition
    // A function as replacement, because `$` has a meaning in a replacing text.
    const withValues = (values: readonly Value[]) => {
      const placeholder = parameter(JSON.stringify(values))
      return text.replaceAll('$values', () => placeholder)
    }
    return [
      ...(wanted.length > 0 ? [`(${withValues(wanted)})`] : []),
      ...(excluded.length > 0 ? [`not (${withValues(excluded)})`] : []),
    ]
  })
  return conditions.length === 0 ? 'true' : conditions.join('\n  and ')
}

// ---- The parameters -------------------------------------------------------------------------------------------------

type Read = (text: string) => Value | null

const segments =
  (read: (parts: string[]) => Value | null): Read =>
  (text) => {
    const parts = text.split('/')
    return parts.every((part) => part !== '') ? read(parts) : null
  }

const oneOf =
  (words: readonly string[]): Read =>
  (text) =>
    words.find((word) => word.toLowerCase() === text.toLowerCase()) ?? null

const readPort: Read = (text) => {
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  if (first === undefined || Number(last) > MAX_PORT || Number(first) > Number(last)) return null
  return { first: Number(first), last: Number(last) }
}

const readAddress: Read = (text) => {
  const [, address = text, bits] = /^(.*)\/(\d{1,3})$/.exec(text) ?? []
  const family = address.includes('%') ? 0 : isIP(address)
  if (family === 0) return null
  if (bits === undefined) return { address: canonicalAddress(address) }
  return Number(bits) <= (family === 4 ? 32 : 128) ? { network: text, beginning: beginningOf(text) } : null
}

/** A pattern for LIKE of all addresses of a network: its whole bytes, or for IPv6 that there is a colon. */
function beginningOf(network: string): string {
  const [address, bits] = network.split('/') as [string, string]
  if (address.includes(':')) return '%:%'
  const bytes = address.split('.').slice(0, Math.floor(Number(bits) / 8))
  return bytes.length === 4 ? address : `${bytes.map((byte) => `${byte}.`).join('')}%`
}

const readLabel: Read = (text) => {
  const at = text.indexOf('=')
  return at > 0 ? { key: text.slice(0, at), value: text.slice(at + 1) } : null
}

const readPod = segments(([namespace, name, ...more]) => {
  if (name === undefined || more.length > 0) return null
  return name.endsWith('*') ? { namespace: namespace!, prefix: name.slice(0, -1) } : { namespace: namespace!, name }
})

const readWorkload = segments((parts) => {
  const [namespace, kind, name] = parts.length === 2 ? [parts[0], undefined, parts[1]] : parts
  if (parts.length < 2 || parts.length > 3) return null
  return { namespace: namespace!, ...(kind === undefined ? {} : { kind }), name: name! }
})

const readService = segments((parts) => (parts.length === 2 ? { namespace: parts[0]!, name: parts[1]! } : null))
const readName: Read = (text) => text

/** How the values of a subject are read, the rule, and its description; `words` are all values where there are few. */
interface Values {
  readonly read: Read
  readonly rule: string
  /** A pattern of values for the OpenAPI document; not of all where no pattern can say it. */
  readonly pattern: string
  readonly about: string
  readonly words?: readonly string[]
}

const oneOfWords = (...words: string[]): Values => ({
  ...{ read: oneOf(words), rule: `expected ${words.join(', ')}`, words, pattern: words.join('|') },
  about: words.map((word) => `\`${word}\``).join(', '),
})
const values = (read: Read, rule: string, about: string, pattern: string): Values => ({ read, rule, about, pattern })

const NAME = '[^\\u0000!][^\\u0000]*'
const SEGMENT = '[^\\u0000/]+'
const FIRST_SEGMENT = '[^\\u0000/!][^\\u0000/]*'
const BYTE = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)'
const GROUPS = '[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,2}'
const IPV4 = `(?:${BYTE}\\.){3}${BYTE}(?:/(?:3[0-2]|[12]?\\d))?`
const IPV6 = `${GROUPS}::(?:${GROUPS})?(?:/(?:12[0-8]|1[01]\\d|[1-9]?\\d))?`
const ADDRESS = `${IPV4}|${IPV6}`
const PORT = '6553[0-5]|655[0-2]\\d|65[0-4]\\d\\d|6[0-4]\\d{3}|[1-5]\\d{4}|\\d{1,4}'

export const SUBJECTS: Readonly<Record<Subject, Values>> = {
  namespace: values(readName, 'expected a name', 'a name', NAME),
  workload: values(
    readWorkload,
    'expected namespace/name or namespace/Kind/name',
    '`namespace/name` or `namespace/Kind/name`',
    `${FIRST_SEGMENT}/${SEGMENT}(?:/${SEGMENT})?`,
  ),
  pod: values(
    readPod,
    'expected namespace/name or namespace/prefix*',
    '`namespace/name` or `namespace/prefix*`',
    `${FIRST_SEGMENT}/${SEGMENT}`,
  ),
  service: values(readService, 'expected namespace/name', '`namespace/name`', `${FIRST_SEGMENT}/${SEGMENT}`),
  ip: values(readAddress, 'expected an address or a CIDR', 'an address or a CIDR, in any spelling', ADDRESS),
  label: values(
    readLabel,
    'expected key=value',
    '`key=value`, a label that the pod had at the time of the flow',
    '[^\\u0000=!][^\\u0000=]*=[^\\u0000]*',
  ),
  node: values(readName, 'expected a name', 'a name', NAME),
  port: values(
    readPort,
    `expected a port of 0 to ${MAX_PORT}, or two with a hyphen`,
    'a port of the server, or `first-last`',
    `${PORT}|[1-9]\\d{0,2}-[1-9]\\d{3}`,
  ),
  protocol: oneOfWords('TCP', 'UDP', 'SCTP'),
  verdict: oneOfWords('ALLOW', 'DROP'),
  seen_by: oneOfWords('from', 'to'),
  peer: oneOfWords('pod', 'service', 'node', 'external', 'unresolved'),
  public: oneOfWords('true', 'false'),
}

const ofSide = (subject: Subject) => 'pod' in COMPARISONS[subject]
const SIDE_TEXTS: Readonly<Record<Side, string>> = {
  either: 'Either side',
  from: 'The side that opened the connection',
  to: 'The side that accepted the connection',
}

interface Parameter {
  readonly name: string
  readonly subject: Subject
  readonly side: Side
}

/** All parameters of a filter. */
const PARAMETERS: readonly Parameter[] = (Object.keys(SUBJECTS) as Subject[]).flatMap((subject) =>
  ofSide(subject)
    ? (['either', 'from', 'to'] as const).map((side) => ({
        ...{ subject, side },
        name: side === 'either' ? subject : `${side}_${subject}`,
      }))
    : [{ subject, side: 'either' as const, name: subject }],
)

function chosenValue(subject: Subject) {
  const { read, rule } = SUBJECTS[subject]
  return z.string().transform((sent, c): Chosen | null => {
    if (sent.trim() === '') return null
    const isExcluded = sent.startsWith('!')
    const text = isExcluded ? sent.slice(1) : sent
    const isText = text !== '' && text.length <= MAX_VALUE_CHARS && !text.includes('\0') && text.isWellFormed()
    const value = isText ? read(text) : null
    if (value !== null) return { isExcluded, value }
    c.addIssue({ code: 'custom', message: `${rule}, or the same with a ! in front` })
    return z.NEVER
  })
}

const aboutOf = ({ subject, side }: Parameter) =>
  `${ofSide(subject) ? `${SIDE_TEXTS[side]}: ` : ''}${SUBJECTS[subject].about}. \`!\` in front excludes.`

const valuesOf = (parameter: Parameter) =>
  documentedAs(z.array(chosenValue(parameter.subject)).max(MAX_VALUES, `more than ${MAX_VALUES} values`).default([]), {
    type: 'array',
    items: {
      type: 'string',
      maxLength: MAX_VALUE_CHARS,
      pattern: `^\\s*$|^!?(?:${SUBJECTS[parameter.subject].pattern})$`,
    },
    maxItems: MAX_VALUES,
    description: aboutOf(parameter),
  })

/** The parameters of a filter, for the schema of a query whose parameters may be repeated. */
export const filterParameters = Object.fromEntries(
  PARAMETERS.map((parameter) => [parameter.name, valuesOf(parameter)]),
) as Record<string, ReturnType<typeof valuesOf>>

/** The filter that the validated parameters of a query are. */
export const filterOf = (parameters: Readonly<Record<string, unknown>>): FlowFilter =>
  PARAMETERS.flatMap(({ name, subject, side }) => {
    const values = (parameters[name] as readonly (Chosen | null)[]).filter((one) => one !== null)
    if (values.length === 0) return []
    const chosen = (isExcluded: boolean) =>
      values.filter((one) => one.isExcluded === isExcluded).map(({ value }) => value)
    return [{ subject, side, wanted: chosen(false), excluded: chosen(true) }]
  })
