/** Edges between the sides of flows, and the query for them (docs/contract.md#flow-edges). */
import { z } from 'zod'
import { cursorOf, cursorText, writeCursor } from '../http/request/cursor.ts'
import { flag, wireTime } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { inColumns } from '../records/column-kinds.ts'
import { parseNaive } from '../time/timestamp.ts'
import { filterParameters } from './filter-parameters.ts'
import { limit, moment } from './parameters.ts'
import { isSnapshot } from './resume.ts'

const text = z.string().nullable()

/** A side of an edge. */
export const FlowEdgeSide = inColumns(
  z
    .strictObject({
      kind: z
        .enum(['workload', 'pod', 'service', 'namespace', 'node', 'external', 'unresolved'])
        .describe('`pod`: a pod whose workload was not recorded.'),
      namespace: text,
      name: text.describe('Of a pod or service.'),
      workload: text.describe('`Kind/name`.'),
      ip: text.describe('The address of a node or of an `external` or `unresolved` peer, or with `cidr` its network.'),
    })
    .meta({ id: 'FlowEdgeSide' }),
)

/** All flows between two sides. */
export const FlowEdge = z
  .strictObject({
    from: FlowEdgeSide,
    to: FlowEdgeSide,
    port: text.describe('On which the server listens.'),
    protocol: text,
    verdict: text,
    flows: z.int().describe('Their number.'),
    pods: z.int().nullable().describe('Pods whose agents reported them; null with `count_pods=false`.'),
    seenBy: z.array(z.string()).describe('The sides whose agents reported them: `from`, `to`.'),
    firstSeenAt: wireTime,
    lastNewAt: wireTime.describe('The time of the newest. A living pod never reports a flow twice.'),
  })
  .meta({ id: 'FlowEdge' })

/** A page of `GET /flows/edges`. */
export const FlowEdgePage = z
  .strictObject({
    items: z.array(FlowEdge),
    nextAfter: text.describe('The `after` of the next page; null on the last one.'),
    asOf: wireTime.describe('All flows that were stored by then are counted.'),
    observedSince: wireTime.nullable().describe('Edges are complete from here on; null where there is none.'),
    unstamped: z
      .int()
      .describe('Flows left out because it was not recorded whether the filter matches their workload, label or node.'),
  })
  .meta({ id: 'FlowEdgePage' })

export const EDGE_GROUPS = ['workload', 'namespace', 'service'] as const
export type EdgeGroup = (typeof EDGE_GROUPS)[number]
export const EDGE_ORDERS = ['lastNewAt', 'flows'] as const
export type EdgeOrder = (typeof EDGE_ORDERS)[number]

/** The place of an edge in a list that began when everything by `base` was counted. */
export interface EdgePlace {
  /** The range of the list: distances from now are those of its first page. Texts of PostgreSQL, as `base`. */
  readonly since: string
  readonly until: string
  readonly base: string
  /** Text of a pg_snapshot where flows are counted by the query itself, else empty. */
  readonly snapshot: string
  /** The time of the first page. */
  readonly asOf: string
  /** The edges that changed since the list began come last. */
  readonly isChanged: boolean
  readonly key: string
  readonly hash: string
}

const MAX_CIDR = 32

const isTime = (text: string) => parseNaive(text.replace(' ', 'T')) !== null
const timeOr = (infinite: string) => cursorText.refine((text) => text === infinite || isTime(text))
const isBigint = (text: string) => /^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text)

const Keys = z
  .tuple([
    z.enum(EDGE_GROUPS),
    z.enum(EDGE_ORDERS),
    // since, until, base, snapshot, as of, whether it is behind the unchanged ones, key, hash
    timeOr('-infinity'),
    timeOr('infinity'),
    timeOr('-infinity'),
    z.string().refine((text) => text === '' || isSnapshot(text)),
    cursorText.refine(isTime),
    z.literal([0, 1]),
    cursorText,
    z.string().refine(isBigint),
  ])
  .refine(([, order, , , , , , , key]) => (order === 'flows' ? isBigint(key) : isTime(key)))

export const writePlace = (group: EdgeGroup, order: EdgeOrder, place: EdgePlace) => {
  const { since, until, base, snapshot, asOf, isChanged, key, hash } = place
  return writeCursor([group, order, since, until, base, snapshot, asOf, isChanged ? 1 : 0, key, hash])
}

const cidr = documentedAs(
  z
    .string()
    .regex(/^\d{1,2}$/, `expected 0 to ${MAX_CIDR}`)
    .transform(Number)
    .refine((bits) => bits <= MAX_CIDR, `expected 0 to ${MAX_CIDR}`)
    .nullable()
    .default(null),
  {
    ...{ type: 'integer', minimum: 0, maximum: MAX_CIDR },
    description:
      'Addresses without a pod or service count as networks of so many bits, IPv6 addresses as networks of 64.',
  },
)

/** The query of `GET /flows/edges`. */
export const EdgeParameters = z
  .object({
    ...filterParameters,
    group: z.enum(EDGE_GROUPS).default('workload').describe('What the sides are.'),
    cidr,
    since: moment('Edges that had a new flow at this time or later'),
    until: moment('Edges that were first seen before this time'),
    count_pods: flag(true, 'With `false`, pods are not counted: large groups are faster.'),
    order: z.enum(EDGE_ORDERS).default('lastNewAt').describe('The largest first.'),
    limit,
    after: documentedAs(
      cursorOf(Keys, (sent) => JSON.parse(Buffer.from(sent, 'base64url').toString()), writeCursor),
      { type: 'string', 'x-opaque': true, description: 'The `nextAfter` of the page before; blank is the first page.' },
    ),
  })
  .superRefine(({ group, order, after }, c) => {
    if (after !== null && (after[0] !== group || after[1] !== order))
      c.addIssue({ code: 'custom', path: ['after'], message: 'the cursor is of another group or order' })
  })
export type EdgeParameters = z.output<typeof EdgeParameters>

export function placeOf({ after }: Pick<EdgeParameters, 'after'>): EdgePlace | null {
  if (after === null) return null
  const [, , since, until, base, snapshot, asOf, isChanged, key, hash] = after
  return { since, until, base, snapshot, asOf, isChanged: isChanged === 1, key, hash }
}
