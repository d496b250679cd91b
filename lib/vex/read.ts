/** Reads the decisions that a VEX document about an image has (docs/contract.md#decisions). */
import type { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import type { Decision } from '../decisions/record.ts'
import type { JsonObject } from '../json/objects.ts'
import type { VexFormat } from './parsed.ts'

export interface ImageDecision extends z.output<typeof Decision> {
  /** Of the document that it comes from. */
  readonly format: VexFormat | null
  /** The statement of that document without its products, as it was sent. */
  readonly content: JsonObject | null
  /** The product of that statement, as it was sent. */
  readonly product: JsonObject | null
}

const COUNT = fixed<{ count: number }[]>('select count(*)::int as count from decisions_of_image($1)')

const READ = fixed<Record<'shown' | 'format' | 'content' | 'product' | 'repository', string | null>[]>(`
  with found as materialized (
    select d from decisions_of_image($1) d)
  select decision_shown(f.d)::text as shown,
         (select v.format from vex_document v where v.document_id = (f.d).document_id) as format,
         (select s.content::text from vex_statement s
          where s.document_id = (f.d).document_id and s.position = (f.d).statement_position) as content,
         (f.d).product::text as product,
         (select m.repository from image m where m.digest = $2) as repository
  from found f
  order by (f.d).document_id nulls first, (f.d).statement_position, (f.d).id`)

/** Returns how many decisions a document about the image has. */
export async function countImageDecisions(gate: Gate, digest: string): Promise<number> {
  const [row] = await gate((sql) => COUNT(sql, digest))
  return row!.count
}

export async function readImageDecisions(
  gate: Gate,
  digest: string,
): Promise<{ readonly repository: string | null; readonly decisions: readonly ImageDecision[] }> {
  const rows = await gate((sql) => READ(sql, digest, digest))
  const parsed = (text: string | null) => (text === null ? null : (JSON.parse(text) as JsonObject))
  const decisions = rows.map(
    ({ shown, format, content, product }) =>
      ({ ...parsed(shown), format, content: parsed(content), product: parsed(product) }) as unknown as ImageDecision,
  )
  return { repository: rows[0]?.repository ?? null, decisions }
}
