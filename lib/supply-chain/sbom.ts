/** Reads of the SBOMs of an image. They are kept apart, so each answer comes of one of them (interop-supply-chain 3.3). */
import { fixed, type Gate } from '../db/index.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import { Component } from './component.ts'
import { shownSource, type WireNames } from './names.ts'
import { answering, readReports, reportList } from './reports.ts'

/**
 * A scan of the image itself first, and what was merely found beside it last. Those of one source are of different platforms, and come by
 * digest: by the time of their scans, pages that follow one another would be of different ones.
 */
const PREFERRED = `array_position('{operator-scanner,db-matcher,registry}', e.source), e.digest`

/** The SBOMs that there are, and the one of them that answers; `source` is an expression, null for any. */
export const chosen = (asked: string, source: string) => `
  effective as materialized (${answering('sbom', asked)}),
  chosen as materialized (
    select e.* from effective e where e.source = coalesce(${source}, e.source) order by ${PREFERRED} limit 1)`

/** What precedes the record in a row: the reports, in the first row alone, and the source that was chosen. */
const RECORD = 2

const COMPONENTS = fixed(`
  with ${chosen('$1', '$2')}
  select case when i.n is null or i.n = 1 then ${reportList('sbom', 'effective', PREFERRED)} end,
         (select c.source from chosen c), ${plainColumns(Component, 'i')}
  from (values (1)) one(row)
  left join (
    select m.*, m.position as id, row_number() over (order by m.position) as n
    from chosen c
    cross join lateral (
      select * from image_component m
      where m.digest = c.digest and m.source = c.source and m.position > $3
      order by m.position
      limit $4) m) i on true
  order by i.n`)

/**
 * The SBOMs that there are for a digest, the one of them that answers, and a page of its components as JSON. A null `source` is any, an
 * empty one none; `after` is the id of the last component of the page before, or less than any.
 */
export async function readComponents(
  gate: Gate,
  digest: string,
  source: string | null,
  { limit, after }: { limit: number; after: number },
  names: WireNames,
) {
  const rows: RawRow[] = await gate((sql) => COMPONENTS(sql, digest, source, after, limit + 1).raw())
  const reports = readReports(rows[0]![0]!, names)
  const chosen = rows[0]![1]
  const items = rows.slice(0, limit).filter((row) => row[RECORD] !== null)
  return {
    reports,
    report: reports.find((report) => chosen !== null && report.source === shownSource(String(chosen), names)) ?? null,
    items: plainRows(Component, items, RECORD),
    nextAfter: rows.length > limit ? Number(items.at(-1)![RECORD]) : null,
  }
}
