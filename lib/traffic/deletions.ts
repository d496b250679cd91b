import type { Sql } from '../db/index.ts'

/**
 * A CTE for every statement that deletes flows, after one named `deleted`: the count grows in the same transaction, so
 * a process that reads the new count finds the flows gone.
 */
export const countedDeletion = (sql: Sql) => sql`
  counted as (
    insert into traffic_deletion (statements) select 1 where exists (select from deleted)
    on conflict (is_only) do update set statements = traffic_deletion.statements + 1)`
