/** Compares a list of flows that is read by pods with the same list that examines each flow. */
import assert from 'node:assert/strict'
import { filterOf, filterParameters } from '../../lib/flows/filter-parameters.ts'
import { renderItems } from '../../lib/flows/forms.ts'
import { itemRecord } from '../../lib/flows/item.ts'
import { FlowList } from '../../lib/flows/list.ts'
import { FlowParameters } from '../../lib/flows/parameters.ts'
import { readRange } from '../../lib/flows/range.ts'
import type { FlowQuery } from '../../lib/flows/read.ts'
import { readReporters } from '../../lib/flows/reporters.ts'
import type { startApp } from '../support/app.ts'
import type { Query } from './flow-model.ts'

type App = Pick<Awaited<ReturnType<typeof startApp>>, 'db'>

export interface Sizes {
  /** Flows that the first statement examines, and each further one. */
  readonly first: number
  readonly next: number
  /** Flows that a statement finds at most. */
  readonly rows: number
}

const ALL = { first: 100_000, next: 100_000, rows: 20_000 }
/** Every filter is rare. */
const RARE = 0
const FOR_EVER = 0

async function listOf({ db }: App, query: FlowQuery, { rows, ...examined }: Sizes) {
  const list = new FlowList(db.read, query, itemRecord(['uuid']), null, { ...examined, rare: RARE })
  const uuids: string[] = []
  for (let left = 1_000; !list.isOver; left--) {
    assert.ok(left > 0, 'the list does not end')
    const found: { uuid: string }[] = JSON.parse(`[${await list.next(rows, renderItems)}]`)
    uuids.push(...found.map(({ uuid }) => uuid))
  }
  return { uuids, unstamped: list.unstamped }
}

/** Returns whether the pods that reported flows of the filter are known. */
export async function assertSameByPods(app: App, asked: Query, sizes: Sizes): Promise<boolean> {
  const sent: Record<string, string | string[]> = {}
  for (const [name, value] of asked)
    if (!(name in filterParameters)) sent[name] = value
    else sent[name] = [...(sent[name] ?? []), value]
  const parameters = FlowParameters.parse(sent)
  const range = await readRange(app.db.read, parameters.since, parameters.until, FOR_EVER)
  if (range === null) return false
  const { since, until } = range
  const query: FlowQuery = { filter: filterOf(parameters), order: parameters.order, since, until }
  assert.deepEqual(await listOf(app, query, sizes), await listOf(app, query, ALL))
  return (await readReporters(app.db.read, query, null)) !== null
}
