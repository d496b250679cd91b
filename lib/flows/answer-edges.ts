/** The answer of `GET /flows/edges` (docs/contract.md#flow-edges). */
import { createHash } from 'node:crypto'
import { type Context, HttpError, notModified, sendCached } from '../http/index.ts'
import { type CachedBody, cacheBody } from '../http/response/cached-body.ts'
import { fromPostgres } from '../time/timestamp.ts'
import { type EdgeParameters, FlowEdge, placeOf, writePlace } from './edge.ts'
import { isCountedByQuery, isTooMany, MAX_COUNTED, readEdges, readEdgesPlain } from './edges.ts'
import type { Condition } from './filter.ts'
import { filterOf } from './filter-parameters.ts'
import { renderItems } from './forms.ts'
import { itemsOfPage } from './parameters.ts'
import { readRange } from './range.ts'
import { readReporters } from './reporters.ts'

/** The read budget is charged this for each edge of a page. */
export const EDGE_BYTES = 4_096

export async function answerEdges(c: Context, asked: EdgeParameters): Promise<Response> {
  const { db, edges } = c.get('deps')
  const build = () => buildAnswer(c, asked)
  // Flows of the range change without a count.
  const answer = await (isCountedByQuery(filterOf(asked)) ? build() : edges.read(db.read, JSON.stringify(asked), build))
  return (await notModified(async () => answer)(c, async () => {})) ?? sendCached(c, answer)
}

/** The answer until the flows of an older release are counted. */
export const stillCounting = () =>
  new HttpError(503, 'edges: the flows that are stored are being counted for the first time: retry later', {
    'retry-after': '30',
  })

/** Workloads and ports may be those behind a service, which a flow does not tell. */
const isOfFlow = ({ subject }: Condition) => subject !== 'workload' && subject !== 'port'

async function buildAnswer(c: Context, asked: EdgeParameters): Promise<CachedBody> {
  const { db, config } = c.get('deps')
  const { group, cidr, count_pods: countPods, order } = asked
  const limit = itemsOfPage(asked)
  const filter = filterOf(asked)
  const isOfFlows = isCountedByQuery(filter)
  const after = placeOf(asked)
  if (after !== null && isOfFlows !== (after.snapshot !== ''))
    throw new HttpError(400, 'Query deserialize error: after: the cursor is of another filter')
  const [from, to] = after === null ? [asked.since, asked.until] : [{ time: after.since }, { time: after.until }]
  const range = await readRange(db.read, from, to, config.trafficRetentionDays)
  if (range === null) throw new HttpError(400, 'Query deserialize error: until: expected no time before since')
  const { since, until } = range
  const looked = { filter: filter.filter(isOfFlow), order: 'oldest', since, until } as const
  const reporters = isOfFlows ? await readReporters(db.read, looked, null) : null
  if (isOfFlows && (await isTooMany(db.read, range, reporters?.pods ?? null)))
    throw new HttpError(
      400,
      `Query deserialize error: since: a filter by pod, label, node or ip counts at most ${MAX_COUNTED} flows, and ` +
        'more are in the range: narrow it with since and until',
    )

  const retentionDays = config.flowEdgeRetentionDays
  const query = { filter, group, cidr, countPods, order, since, until, after, limit, retentionDays, reporters }
  const found = await readEdges(db.read, query)
  const { place, base, snapshot, asOf } = found
  if (asOf === null) throw stillCounting()
  const items = await renderItems(FlowEdge, found, () => readEdgesPlain(db.read, query))
  const placed = place === null || found.passed < limit ? null : { ...place, since, until, base, snapshot, asOf }
  const observed = isOfFlows || found.observedSince === null ? null : fromPostgres(found.observedSince)
  const facts = {
    nextAfter: placed === null ? null : writePlace(group, order, placed),
    asOf: fromPostgres(asOf),
    observedSince: isOfFlows ? range.observedSince : observed,
    unstamped: Number(found.unstamped),
  }
  const tail = `],${JSON.stringify(facts).slice(1)}`
  const cached = await cacheBody(Buffer.concat([Buffer.from('{"items":['), items, Buffer.from(tail)]))
  // Equal while the edges are, whatever the time.
  const hash = createHash('sha256')
    .update(items)
    .update(`${facts.unstamped} ${facts.nextAfter !== null}`)
  return { ...cached, tag: `W/"${hash.digest('base64url')}"` }
}
