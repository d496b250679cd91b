import type { Sql } from '../db/index.ts'

/**
 * A part of every statement that deletes flows, behind one called `deleted`: the count grows in the same transaction, so that whoever
 * finds it grown finds the flows gone.
 */
export const countedDeletion = (sql: Sql) => sql`
  counted as (
    insert into traffic_deletion (statements) select 1 where exists (select from deleted)
    on conflict (is_only) do update set statements = traffic_deletion.statements + 1)`
