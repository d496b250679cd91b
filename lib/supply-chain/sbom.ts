/** Reads of the SBOMs of an image. SBOMs are not merged: each answer comes from one of them (docs/contract.md#sbom). */

import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import type { WireNames } from '../wire-names/index.ts'
import { CONTAINERS, detail, evidence, inUseDetail, isInUse, packagesInUse, stateName, usage } from './in-use.ts'
import { answering, answeringColumns, answeringFields, Report, readAnswering } from './reports.ts'

/** A component of an SBOM. */
export const Component = z
  .strictObject({
    id: z.int().min(1),
    name: z.string(),
    version: z.string().nullable(),
    purl: z.string().nullable(),
    type: z.string().nullable(),
    class: z.string().nullable(),
    srcName: z.string().nullable(),
    srcVersion: z.string().nullable(),
    licenses: z.array(z.string()),
    layerDigest: z.string().nullable(),
    filePaths: z.array(z.string()),
    ...usage,
    inUseDetail,
  })
  .meta({ id: 'SbomComponent' })

/** A page of GET /images/{digest}/sbom. */
export const ComponentPage = z
  .strictObject({
    ...answeringFields(
      'The SBOMs of all sources, whatever the query asks for. For an index there is one for each platform that ' +
        'has one.',
    ),
    report: Report.nullable().describe('The report that the items come from; null without one.'),
    items: z.array(Component),
    nextAfter: z.int().nullable().describe('The `after` of the next page; null on the last one.'),
  })
  .meta({ id: 'SbomPage' })

/**
 * Order of preference: a scan of the image itself first, an SBOM found in a registry last. SBOMs of one source describe
 * different platforms and are ordered by digest; ordered by scan time, consecutive pages could come from different
 * ones.
 */
export const PREFERRED = `array_position('{operator-scanner,db-matcher,registry}', e.source), e.digest`

/** The SBOM to read. A null `source` is any, an empty one none; a null `reportDigest` is any. */
export interface SbomChoice {
  readonly source: string | null
  readonly reportDigest: string | null
}

/** SQL: all SBOMs of the image, and the one that answers. `source` and `reportDigest` are expressions, null for any. */
export const chosen = (digest: string, source: string, reportDigest: string) => `
  effective as materialized (
    select e.*, row_number() over (order by ${PREFERRED}) as nth from (${answering('sbom', digest)}) e),
  chosen as materialized (
    select e.*
    from effective e
    where e.source = coalesce(${source}, e.source) and e.digest = coalesce(${reportDigest}, e.digest)
    order by e.nth limit 1)`

/** Columns before the record: reports and guesses, in the first row only, and the number of the chosen report. */
const RECORD = 3

const COMPONENTS = fixed(`
  with asked as materialized (
    select $1::text as digest, $2::bigint as window_hours),
  ${CONTAINERS},
  ${chosen('$3', '$4', '$5')},
  page as materialized (
    select m.*, package_coverage(m.type, m.class, m.purl) as coverage
    from chosen c
    cross join lateral (
      select m.*
      from image_component m
      where m.digest = c.digest and m.source = c.source and m.position > $6
      order by m.position
      limit $7) m),
  ${packagesInUse('array(select p.name from page p)')}
  select ${answeringColumns('sbom', { from: 'effective', order: 'e.nth' }, { rows: 'i', digest: '$8' })},
         (select c.nth::text from chosen c), ${plainColumns(Component, 'i')}
  from (values (1)) one(row)
  left join (
    select m.*, m.position as id, row_number() over (order by m.position) as n,
           ${isInUse('u.state')} as in_use, ${stateName('u.state')} as in_use_state,
           ${detail('u', 'm.coverage')} as in_use_detail
    from page m
    cross join lateral (${evidence('m.name', "(m.coverage <> 'interpreted')")}) u) i on true
  order by i.n`)

/**
 * Returns the SBOMs of a digest, the one that answers, and a page of its components as JSON. `after` is the id of the
 * last component of the previous page, or a number below every id.
 */
export async function readComponents(
  gate: Gate,
  digest: string,
  { source, reportDigest }: SbomChoice,
  { limit, after }: { limit: number; after: number },
  { wireNames: names, inUseWindowHours }: { wireNames: WireNames; inUseWindowHours: number },
) {
  const rows: RawRow[] = await gate((sql) =>
    COMPONENTS(sql, digest, inUseWindowHours, digest, source, reportDigest, after, limit + 1, digest).raw(),
  )
  const { reports, retiredGuesses } = readAnswering(rows[0]!, names)
  const chosenReport = rows[0]![2]
  const items = rows.slice(0, limit).filter((row) => row[RECORD] !== null)
  return {
    reports,
    retiredGuesses,
    report: chosenReport === null ? null : reports[Number(chosenReport) - 1]!,
    items: plainRows(Component, items, RECORD),
    nextAfter: rows.length > limit ? Number(items.at(-1)![RECORD]) : null,
  }
}
