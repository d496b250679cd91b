import { z } from 'zod'
import { digestText } from '../images/digest.ts'
import { MAX_REPORTS, Report, retiredGuesses } from './reports.ts'

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
  })
  .meta({ id: 'SbomComponent' })

/** A page of GET /images/{digest}/sbom. */
export const ComponentPage = z
  .strictObject({
    digest: digestText,
    reports: z
      .array(Report)
      .max(MAX_REPORTS)
      .describe('The SBOMs of all sources, whichever is asked for. Of an index one of each platform that has one.'),
    retiredGuesses,
    report: Report.nullable().describe('The one that the items come from; null when there is none.'),
    items: z.array(Component),
    nextAfter: z.int().nullable().describe('The `after` of the next page; null on the last one.'),
  })
  .meta({ id: 'SbomPage' })
