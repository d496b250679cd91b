/** The decisions about a vulnerability with their history (docs/contract.md#decisions). */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { wireTime } from '../http/request/fields.ts'
import { decisionFields } from './record.ts'

const Listed = z
  .strictObject({
    ...decisionFields,
    holds: z.boolean().describe('Whether it holds now.'),
    endedAt: wireTime.nullable(),
    endedHow: z.enum(['replaced', 'withdrawn', 'expired']).nullable(),
    endedBy: z.string().nullable(),
    endedWhy: z.string().nullable(),
  })
  .meta({ id: 'ListedDecision' })

export const DecisionPage = z
  .strictObject({
    id: z.string().describe('As in the path.'),
    items: z.array(Listed).describe('The newest first, with those that no longer hold.'),
    nextAfter: z.int().nullable().describe('The `after` of the next page; null on the last one.'),
  })
  .meta({ id: 'DecisionPage' })

// A decision has one name, so that each is found once.
const PAGE = fixed<{ id: string; shown: string; rest: string }[]>(`
  with names as materialized (
    select n.name from unnest(vuln_names($1)) n(name)
    union
    select a.vuln_id from vex_alias a where a.alias = upper($2)),
  found as materialized (
    select d.whole
    from names n
    cross join lateral (
      select d as whole from vuln_decision d
      where d.name = n.name and d.id < $3::bigint
      order by d.name, d.id desc limit $4) d
    order by (d.whole).id desc limit $5)
  select (f.whole).id::text as id, decision_shown(f.whole)::text as shown,
         json_build_object(
           'holds', (f.whole).ended_at is null
                    and ((f.whole).holds_until is null or (f.whole).holds_until >= (now() at time zone 'utc')::date),
           'endedAt', wire_time((f.whole).ended_at), 'endedHow', (f.whole).ended_how,
           'endedBy', (f.whole).ended_by, 'endedWhy', (f.whole).ended_reason)::text as rest
  from found f
  order by (f.whole).id desc`)

/** A page of the decisions about a vulnerability as JSON; `after` is the id of the last one of the page before. */
export async function readDecisions(
  gate: Gate,
  id: string,
  { limit, after }: { readonly limit: number; readonly after: number },
): Promise<string> {
  const rows = await gate((sql) => PAGE(sql, id, id, after, limit + 1, limit + 1))
  const items = rows.slice(0, limit).map(({ shown, rest }) => `${shown.trimEnd().slice(0, -1)},${rest.slice(1)}`)
  const nextAfter = rows.length > limit ? rows[limit - 1]!.id : null
  return `{"id":${JSON.stringify(id)},"items":[${items}],"nextAfter":${nextAfter}}`
}
