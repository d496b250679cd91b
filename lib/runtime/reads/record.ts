/** The answers of the two read routes of the runtime inventory (docs/contract.md#executables). */
import { z } from 'zod'
import { wireTime } from '../../http/request/fields.ts'
import { DIGEST_PATTERN, digestText } from '../../images/index.ts'
import { storedJson } from '../../records/column-kinds.ts'
import { KINDS, ORIGINS } from '../executables/index.ts'
import { ReasonDetail } from '../reason-detail.ts'
import { WATCHED_REASONS } from '../reasons.ts'

/** The origins of files that were not part of an image. */
export const UNSHIPPED_ORIGINS = ['deleted', 'writableLayer', 'memfd'] as const

export const kind = z.enum(KINDS).describe('Executed, or mapped executable.')
const origin = z.enum(ORIGINS).describe('Where the file lived when it ran: the most suspicious that was seen.')
const pathComplete = z.boolean().describe('False where `path` is the end of a path that was cut short.')
export const imageDigest = z
  .string()
  .regex(new RegExp(`^$|${DIGEST_PATTERN}`))
  .describe('Empty where the image is not resolved.')

export const source = z
  .enum(['ebpf', 'backfill'])
  .describe('`backfill` where it ran already when watching began, and was not seen to start since.')

export const WorkloadEntry = z.strictObject({
  path: z.string(),
  kind,
  source,
  origin,
  pathComplete,
  firstSeen: wireTime,
  lastSeen: wireTime,
})

/** Silent pods that are named for a container and image. */
export const MAX_SILENT_PODS = 10

const ContainerCoverage = z.strictObject({
  containerName: z.string(),
  imageDigest,
  instances: z.int().min(1).describe('Containers with a heartbeat in the window.'),
  lastHeartbeat: wireTime,
  mode: z.enum(['exec', 'full']).describe('That of the newest heartbeat.'),
  librariesTracked: z.boolean().describe('Whether all instances report libraries.'),
  covered: z.boolean().describe('Whether what is listed is all that ran in the window.'),
  observedSince: wireTime,
  reason: z.enum(WATCHED_REASONS).nullable().describe('Why it is not covered, the first that holds; null when it is.'),
  reasonDetail: storedJson(ReasonDetail.nullable()),
  windowHours: z.int().min(1).max(720),
  silentPods: z
    .array(z.string())
    .min(1)
    .max(MAX_SILENT_PODS)
    .optional()
    .describe(
      'Pods that ran the container and image when their agent fell silent, by name: nobody said that they ended, ' +
        'and what they have run since is not known, whatever `covered` says of the others. Absent where there is ' +
        'none.',
    ),
  silentPodCount: z.int().min(1).optional().describe('How many such pods there are, with those beyond the list.'),
})
/** The keys that each object has, in the order of the columns. */
export const WholeCoverage = ContainerCoverage.omit({ silentPods: true, silentPodCount: true })

/** A list longer than this is cut. */
export const MAX_COVERAGE = 200

/** GET /workloads/{namespace}/{kind}/{name}/runtime. */
export const WorkloadRuntime = z
  .strictObject({
    namespace: z.string(),
    kind: z.string(),
    name: z.string(),
    containers: z
      .array(z.strictObject({ containerName: z.string(), imageDigest, entries: z.array(WorkloadEntry).min(1) }))
      .describe('One for each container and digest, in the order of both; entries by kind, then path.'),
    truncated: z.boolean().describe('Whether there are more entries than `limit`.'),
    coverage: z
      .array(ContainerCoverage)
      .max(MAX_COVERAGE)
      .describe(
        'One for each container and digest with a heartbeat in the window. Empty where nobody watches: then no ' +
          'entry says nothing.',
      ),
  })
  .meta({ id: 'WorkloadRuntime' })

export const ImageEntry = z.strictObject({
  path: z.string(),
  kind,
  pathComplete: pathComplete.describe('Whether any report of it has the whole path.'),
  origin,
  firstSeen: wireTime,
  lastSeen: wireTime,
  workloads: z.int().min(1).describe('Distinct workloads that ran it.'),
})

export const ImageCoverage = z.strictObject({
  workloads: z.int().min(0),
  instances: z.int().min(0).describe('Containers of the image with a heartbeat in the window.'),
  lastHeartbeat: wireTime.nullable(),
  librariesTracked: z.boolean().describe('Whether there are instances and all report libraries.'),
  instancesWithDrops: z.int().min(0).describe('Those that lost events in the window.'),
  windowHours: z.int().min(1).max(720),
})

/** GET /images/{digest}/runtime. */
export const ImageRuntime = z
  .strictObject({
    digest: digestText,
    entries: z.array(ImageEntry).describe('By kind, then path.'),
    truncated: z.boolean().describe('Whether more follow.'),
    nextCursor: z.string().nullable().describe('The `after` of the next page, `<kind>:<path>`; null on the last one.'),
    coverage: ImageCoverage,
  })
  .meta({ id: 'ImageRuntime' })
