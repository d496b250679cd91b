/** The block `drift`: differences from an export or an earlier version (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { digestText } from '../../images/index.ts'
import { severity } from './common.ts'
import { CHECKS, LEVELS } from './pod-security.ts'

export const DRIFT_TYPES = [
  'tagMoved',
  'imageChangedSinceExport',
  'securityContextRegression',
  'unshippedExecutable',
] as const
export type DriftType = (typeof DRIFT_TYPES)[number]
export const MAX_FILES = 20
const hash = z.string().describe('As `contentHash` of a profile.')
const level = z.enum(LEVELS).nullable()

const TagMoved = z.strictObject({ imageRef: z.string(), digests: z.array(digestText), since: zonedTime })
const ImageChanged = z.strictObject({
  containerInExport: z.boolean(),
  exportedDigests: z.array(digestText),
  newDigests: z.array(digestText),
})
const Regression = z.strictObject({ newlyFailing: z.array(z.enum(CHECKS)), levelFrom: level, levelTo: level })
const Unshipped = z.strictObject({
  origins: z.array(z.string()),
  files: z
    .array(
      z.strictObject({
        path: z.string(),
        kind: z.enum(['exec', 'lib']),
        origin: z.string(),
        digest: digestText,
        pathComplete: z.boolean(),
        firstSeen: zonedTime,
        lastSeen: zonedTime,
      }),
    )
    .max(MAX_FILES)
    .describe('The ones seen last.'),
  filesTotal: z.int().min(1),
  truncated: z.boolean(),
})

const Item = z.strictObject({
  type: z.enum(DRIFT_TYPES),
  findingId: z.string(),
  severity,
  container: z.string().nullable(),
  detail: z.union([TagMoved, ImageChanged, Regression, Unshipped]),
})
export type DriftItem = z.output<typeof Item>

export const Drift = z
  .strictObject({
    baselines: z.strictObject({
      export: z
        .strictObject({
          revision: z.int().nullable(),
          contentHash: hash,
          mode: z.enum(['audit', 'enforce']),
          artifacts: z.array(z.string()),
          exportedAt: zonedTime,
        })
        .nullable()
        .describe('The newest recorded export; null without one.'),
      securityContext: z
        .strictObject({ source: z.enum(['export', 'previousVersion']), revision: z.int().nullable(), since: zonedTime })
        .nullable(),
    }),
    evaluated: z.array(z.enum(DRIFT_TYPES)),
    notEvaluated: z.array(
      z.strictObject({ type: z.enum(DRIFT_TYPES), container: z.string().nullable(), reason: z.string() }),
    ),
    items: z.array(Item),
  })
  .meta({ id: 'ProfileDrift' })
export type Drift = z.output<typeof Drift>
