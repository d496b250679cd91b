/** The parameters of a filter of flows: their values and descriptions (docs/contract.md#flow-queries). */
import { isIP } from 'node:net'
import { z } from 'zod'
import { canonicalAddress } from '../net/address.ts'
import { documentedAs } from '../openapi/declare.ts'
import { type FlowFilter, isOfSide, type Side, type Subject, type Value } from './filter.ts'

/** Values of one parameter; more are refused. */
const MAX_VALUES = 64
const MAX_PORT = 65_535
const MAX_VALUE_CHARS = 1_024
/** The bits of an IPv4-mapped IPv6 address before those of the IPv4 address. */
const MAPPED_BITS = 96

interface Chosen {
  readonly isExcluded: boolean
  readonly value: Value
}

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
  const [, address = text, length] = /^(.*)\/(\d{1,3})$/.exec(text) ?? []
  const family = address.includes('%') ? 0 : isIP(address)
  if (family === 0) return null
  const canonical = canonicalAddress(address)
  if (length === undefined) return { address: canonical }
  const bits = Number(length)
  if (bits > (family === 4 ? 32 : 128)) return null
  // A network that has only IPv4-mapped IPv6 addresses is one of IPv4: stored addresses are spelled so.
  const isMapped = family === 6 && isIP(canonical) === 4 && bits >= MAPPED_BITS
  const network = isMapped ? `${canonical}/${bits - MAPPED_BITS}` : `${address}/${bits}`
  return { network, beginning: beginningOf(network) }
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
  isOfSide(subject)
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
  `${isOfSide(subject) ? `${SIDE_TEXTS[side]}: ` : ''}${SUBJECTS[subject].about}. \`!\` in front excludes.`

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
