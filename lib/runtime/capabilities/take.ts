import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { fixed } from '../../db/index.ts'
import type { Dropped } from '../../entries/index.ts'
import { listOf } from '../../http/request/first-fault.ts'
import type { Deps } from '../../http/route.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { type Accepted, totalOf } from '../accepted.ts'
import { CapabilityEntry, type Checks, merged } from './entry.ts'

const ROUTE = '/runtime/capabilities'
const MAX_CAPABILITIES = 5_000

/** Checks only the length of the list; entries are parsed later, one by one. */
export const Capabilities = listOf(
  documentedAs(z.unknown(), {
    ...CapabilityEntry.json,
    description: 'An entry that cannot be stored is dropped; the others are stored.',
  }),
  MAX_CAPABILITIES,
)

const store = fixed<{ store_capabilities: '' }[]>('select store_capabilities($1::text::json, $2::text::uuid)')

/**
 * Adds checks to those stored, in one transaction; dropped entries are counted and logged. If an answer of the database
 * is lost, the post still counts once, because all attempts share an id; only another post of the same row in between
 * makes it count twice. Each row is written, if only for the time of the report.
 */
export async function takeCapabilities(
  { db, rejections }: Pick<Deps, 'db' | 'rejections'>,
  entries: readonly unknown[],
): Promise<Accepted> {
  const { rows, dropped } = await mergeChecks(entries)
  const document = JSON.stringify(rows)
  const post = randomUUID()
  if (rows.length > 0) await db.ingest((sql) => store(sql, document, post))
  rejections.note(ROUTE, dropped, 'checks of capabilities were dropped, counted by the field at fault')
  return { accepted: rows.length, dropped: totalOf(dropped), written: rows.length }
}

/** Parses entries and merges those of one row, in slices. */
async function mergeChecks(entries: Iterable<unknown>): Promise<{ rows: readonly Checks[]; dropped: Dropped }> {
  const rows = new Map<string, Checks>()
  const dropped = await CapabilityEntry.parseAll(entries, (checks) => {
    const key = keyOf(checks)
    const known = rows.get(key)
    rows.set(key, known === undefined ? checks : merged(known, checks))
  })
  return { rows: [...rows.values()], dropped }
}

// No name contains U+0000, so it can separate the parts.
const keyOf = (c: Checks) =>
  [
    ...[c.pod_namespace, c.workload_kind, c.workload_name, c.container_name, c.image_digest],
    ...[c.capability, c.granted, c.probed],
  ].join('\0')
