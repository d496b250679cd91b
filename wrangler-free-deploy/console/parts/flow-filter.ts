/**
 * The filter of flows, shared by the map, the flows page and all other users of edges: fields, completion, parameters.
 */
import { type Params, read } from '../api/client.ts'
import { usePlace } from '../place.ts'
import type { FilterField } from './filter-bar.tsx'

type FlowQuery = NonNullable<NonNullable<Params<'/flows'>['query']>>
type HintField = Params<'/flows/hints'>['query']['field']

const SIDES: readonly (readonly [HintField, string])[] = [
  ['namespace', 'a namespace'],
  ['workload', 'namespace/name or namespace/Kind/name'],
  ['pod', 'namespace/name, or a beginning with *'],
  ['service', 'namespace/name'],
  ['ip', 'an address or a network'],
  ['label', 'key=value of the pod'],
  ['node', 'a node'],
]
const WORDS: readonly (readonly [string, string, readonly string[]])[] = [
  ['protocol', 'protocol', ['TCP', 'UDP', 'SCTP']],
  ['verdict', 'allowed, or dropped: no answer to the SYN', ['ALLOW', 'DROP']],
  ['peer', 'what the peer of the reporting pod is', ['pod', 'service', 'node', 'external', 'unresolved']],
  ['seen_by', 'whose agent reported it', ['from', 'to']],
  ['public', 'whether the peer has a public address', ['true', 'false']],
]

const MANY = { isRepeated: true, canExclude: true } as const

const completeFrom = (field: HintField) => async (prefix: string, signal: AbortSignal) =>
  (await read('/flows/hints', { query: { field, prefix } }, signal)).values

function sideField(
  prefix: '' | 'from_' | 'to_',
  meaning: string,
  [field, form]: readonly [HintField, string],
): FilterField {
  return { name: `${prefix}${field}`, meaning: `${meaning}: ${form}`, complete: completeFrom(field), ...MANY }
}

export const FLOW_FIELDS: readonly FilterField[] = [
  ...SIDES.map((side) => sideField('', 'either side', side)),
  { name: 'port', meaning: 'port of the server, or a range', complete: completeFrom('port'), ...MANY },
  ...WORDS.map(([name, meaning, values]) => ({ name, meaning, values, ...MANY })),
  ...SIDES.map((side) => sideField('from_', 'who opened the connection', side)),
  ...SIDES.map((side) => sideField('to_', 'who accepted it', side)),
]

/** The most likely field for a word without one. */
export function flowFieldOf(word: string): string | null {
  const value = word.replace(/^!/, '')
  if (/^\d{1,5}(-\d{1,5})?$/.test(value)) return 'port'
  if (/^[\d.]+(\/\d+)?$/.test(value) || /^[\da-f:]*:[\da-f:]*(\/\d+)?$/i.test(value)) return 'ip'
  if (/^[^\s=]+=[^\s]*$/.test(value)) return 'label'
  if (value.includes('*')) return 'pod'
  if (value.includes('/')) return 'workload'
  return /^[\w.-]+$/.test(value) ? 'namespace' : null
}

/** The filter of the address, as query parameters of the routes of flows. */
export function useFlowFilter(): FlowQuery {
  const { query } = usePlace()
  const given = FLOW_FIELDS.map(({ name }) => [name, query.getAll(name)] as const)
  return Object.fromEntries(given.filter(([, values]) => values.length > 0))
}
