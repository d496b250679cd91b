/** Reads of the SBOMs of an image. They are kept apart, so each answer comes of one of them (interop-supply-chain 3.3). */
import { fixed, type Gate } from '../db/index.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import type { WireNames } from '../wire-names/index.ts'
import { Component } from './component.ts'
import { answering, guessList, readGuesses, readReports, reportList } from './reports.ts'

/**
 * A scan of the image itself first, and what was merely found beside it last. Those of one source are of different platforms, and come by
 * digest: by the time of their scans, pages that follow one another would be of different ones.
 */
const PREFERRED = `array_position('{operator-scanner,db-matcher,registry}', e.source), e.digest`

/** Which SBOM of an image is wanted. A null `source` is any, an empty one none; null is any `reportDigest`, too. */
export interface SbomChoice {
  readonly source: string | null
  readonly reportDigest: string | null
}

/** The SBOMs that there are, and the one of them that answers; `source` and `reportDigest` are expressions, null for any. */
export const chosen = (asked: string, source: string, reportDigest: string) => `
  effective as materialized (
    select e.*, row_number() over (order by ${PREFERRED}) as place from (${answering('sbom', asked)}) e),
  chosen as materialized (
    select e.*
    from effective e
    where e.source = coalesce(${source}, e.source) and e.digest = coalesce(${reportDigest}, e.digest)
    order by e.place limit 1)`

/** What precedes the record in a row: the reports and guesses in the first row alone, and which of the reports was chosen. */
const RECORD = 3

const COMPONENTS = fixed(`
  with ${chosen('$1', '$2', '$3')}
  select case when i.n is null or i.n = 1 then ${reportList('sbom', 'effective', 'e.place')} end,
         case when i.n is null or i.n = 1 then ${guessList('sbom', '$4', 'effective')} end,
         (select c.place::text from chosen c), ${plainColumns(Component, 'i')}
  from (values (1)) one(row)
  left join (
    select m.*, m.position as id, row_number() over (order by m.position) as n
    from chosen c
    cross join lateral (
      select * from image_component m
      where m.digest = c.digest and m.source = c.source and m.position > $5
      order by m.position
      limit $6) m) i on true
  order by i.n`)

/**
 * The SBOMs that there are for a digest, the one of them that answers, and a page of its components as JSON. `after`
 * is the id of the last component of the page before, or less than any.
 */
export async function readComponents(
  gate: Gate,
  digest: string,
  { source, reportDigest }: SbomChoice,
  { limit, after }: { limit: number; after: number },
  names: WireNames,
) {
  const rows: RawRow[] = await gate((sql) =>
    COMPONENTS(sql, digest, source, reportDigest, digest, after, limit + 1).raw(),
  )
  const reports = readReports(rows[0]![0]!, names)
  const place = rows[0]![2]
  const items = rows.slice(0, limit).filter((row) => row[RECORD] !== null)
  return {
    reports,
    retiredGuesses: readGuesses(rows[0]![1]!, names),
    report: place === null ? null : reports[Number(place) - 1]!,
    items: plainRows(Component, items, RECORD),
    nextAfter: rows.length > limit ? Number(items.at(-1)![RECORD]) : null,
  }
}
