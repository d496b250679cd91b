import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/digest.ts'
import { MAX_REPORTS, Report, retiredGuesses } from './reports.ts'
import { severityName } from './severity.ts'

/** A finding as it is told after those of all sources were merged (supply-chain, Finding). */
export const Finding = z
  .strictObject({
    id: z.string().describe('Its CVE, where it is known to have one.'),
    aliases: z.array(z.string()).describe('Its other ids, whichever report told.'),
    package: z.strictObject({ name: z.string(), type: z.string().nullable(), purl: z.string().nullable() }),
    installedVersion: z.string(),
    fixedVersions: z
      .array(z.string())
      .describe('All that any source gives, by source: their text tells nothing of their order.'),
    fixable: z.boolean(),
    severity: severityName,
    score: z.number().nullable(),
    cvss: z.record(z.string(), z.unknown()).describe('By who scored it.'),
    title: z.string().nullable().describe('Text of third parties.'),
    primaryUrl: z.string().nullable().describe('Text of third parties; not to be fetched.'),
    target: z.string().nullable(),
    class: z.string().nullable(),
    publishedAt: wireTime.nullable(),
    lastModifiedAt: wireTime.nullable(),
    filePaths: z.array(z.string()),
    omitted: z
      .int()
      .min(0)
      .describe('Fixed versions, file paths and aliases that its reports told of and that are not kept.'),
    kev: z
      .boolean()
      .nullable()
      .describe('Whether it is known to be exploited; null is unknown. Of the vulnerability, whichever report told.'),
    kevDateAdded: wireTime.nullable(),
    epss: z.number().nullable(),
    epssPercentile: z.number().nullable(),
    sources: z.array(z.string()),
    reportDigests: z.array(digestText),
    inUse: z.null(),
    inUseState: z.enum(['unknown']),
  })
  .meta({ id: 'Finding' })

/** A page of GET /images/{digest}/vulnerabilities. */
export const FindingPage = z
  .strictObject({
    digest: digestText,
    reports: z
      .array(Report)
      .max(MAX_REPORTS)
      .describe(
        'Without any, nothing is known of the image; that is not to be clean. Of an index one of each platform that was scanned.',
      ),
    retiredGuesses,
    items: z.array(Finding),
    nextAfter: z.string().nullable().describe('The `after` of the next page; null on the last one.'),
  })
  .meta({ id: 'FindingPage' })
