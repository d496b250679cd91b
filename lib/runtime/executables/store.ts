import { type Database, fixed } from '../../db/index.ts'
import { Slice } from '../../event-loop/slices.ts'
import type { Merged } from './merge.ts'

/**
 * Texts of agents are sent as JSON, which is escaped twenty times faster than an array literal. Values that the broker
 * produces need no escapes and are sent as array literals.
 */
const texts = (n: number) => `array(select json_array_elements_text($${n}::text::json))`

const store = fixed<[{ written: number }]>(`
  select store_executables(
    ${[1, 2, 3, 4, 5, 6].map(texts).join(', ')},
    $7::text::integer[], $8::text::text[], ${texts(9)}, $10::text::boolean[], $11::text::text[], $12::text::text[],
    $13::text::integer[],
    $14::text::timestamp[], $15::text::timestamp[]) as written`)

/**
 * Stores rows in one statement. Resolves to the number of new or changed rows, as counted by the attempt that was
 * answered: a retry is safe, because rows that are stored already are not written again. Owners and pods that many rows
 * share are sent once.
 */
export async function storeExecutables(
  db: Database,
  { owners, rows }: Pick<Merged, 'owners' | 'rows'>,
): Promise<number> {
  if (rows.length === 0) return 0
  const pods = new Map<string, number>()
  for (const { sighting } of rows)
    if (sighting.pod !== null && !pods.has(sighting.pod)) pods.set(sighting.pod, pods.size)
  const columns = [
    await json(owners, ({ namespace }) => namespace),
    await json(owners, ({ workloadKind }) => workloadKind),
    await json(owners, ({ workloadName }) => workloadName),
    await json(owners, ({ container }) => container),
    await json(owners, ({ image }) => image),
    await json([...pods.keys()], (pod) => pod),
    await literal(rows, ({ owner }) => place(owner)),
    await literal(rows, ({ sighting }) => sighting.kind),
    await json(rows, ({ sighting }) => sighting.path),
    await literal(rows, ({ sighting }) => String(sighting.isComplete)),
    await literal(rows, ({ sighting }) => sighting.source),
    await literal(rows, ({ sighting }) => sighting.origin),
    await literal(rows, ({ sighting }) => (sighting.pod === null ? 'null' : place(pods.get(sighting.pod)!))),
    await literal(rows, ({ sighting }) => sighting.first),
    await literal(rows, ({ sighting }) => sighting.last),
  ]
  const [row] = await db.ingest((sql) => store(sql, ...columns))
  return row!.written
}

const json = async <T>(list: readonly T[], text: (one: T) => string) =>
  `[${await joined(list, (one) => JSON.stringify(text(one)))}]`

const literal = async <T>(list: readonly T[], element: (one: T) => string) => `{${await joined(list, element)}}`

/** Joins the elements in slices, so that other requests are served in between. */
async function joined<T>(list: readonly T[], element: (one: T) => string): Promise<string> {
  const slice = new Slice()
  const elements: string[] = []
  for (const one of list) {
    elements.push(element(one))
    if (slice.isOver) await slice.next()
  }
  return elements.join(',')
}

/** PostgreSQL counts the places of arrays from 1. */
const place = (index: number) => String(index + 1)
