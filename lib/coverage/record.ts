/** The answer of GET /coverage (docs/contract.md#coverage-report). */
import { z } from 'zod'
import { VERDICTS } from '../attestations/entry.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/index.ts'
import { imageDigest } from '../runtime/reads/index.ts'
import { ReasonDetail } from '../runtime/reason-detail.ts'
import { RUNTIME_REASONS } from '../runtime/reasons.ts'
import { LEVELS } from '../seccomp/capture.ts'
import { DENIAL_REASONS } from '../seccomp/rollup.ts'

/** The parts of the report; each is a list of its own. */
export const PARTS = ['images', 'containers', 'nodes', 'workloads'] as const
export type Part = (typeof PARTS)[number]

/** The codes of missing knowledge, in the order in which they are listed. */
export const MISSING = {
  images: [
    ...['no_report', 'old_report', 'guessed_report', 'cut_report', 'no_sbom', 'guessed_sbom'],
    ...['no_signature_result', 'unknown_signature'],
  ],
  containers: [...RUNTIME_REASONS, 'image_not_resolved'],
  nodes: ['no_facts', 'silent', 'no_runtime_data', 'probes_missing', 'denials_not_watched'],
  workloads: ['no_observations', 'capture_incomplete', 'denials_unknown'],
} as const satisfies Record<Part, readonly string[]>

const missing = <P extends Part>(part: P) =>
  z.array(z.enum(MISSING[part])).describe('What is not known, in a fixed order; empty where nothing is missing.')
const count = z.int().min(0)

const answering = z
  .strictObject({
    scannedAt: wireTime.describe('The newest scan that answers for the image.'),
    join: z
      .enum(['image_id', 'platform_manifest', 'workload_tag'])
      .describe('The strongest join of those that answer.'),
  })
  .nullable()

const Image = z.strictObject({
  digest: digestText,
  repository: z.string().nullable(),
  containers: z.int().min(1).describe('Running containers of the image, in the namespace if one was asked for.'),
  missing: missing('images'),
  report: answering.describe('Vulnerability reports; null without any.'),
  sbom: answering.describe('SBOMs; null without any.'),
  signature: z
    .strictObject({ verdict: z.enum(VERDICTS), checkedAt: wireTime })
    .nullable()
    .describe('The last check; null for an image that was never checked.'),
})

const Container = z.strictObject({
  namespace: z.string(),
  kind: z.string(),
  name: z.string().describe('The name of the workload.'),
  container: z.string(),
  imageDigest,
  missing: missing('containers'),
  covered: z.boolean().describe('Whether all that ran in the window is known.'),
  reason: z.enum(RUNTIME_REASONS).nullable().describe('Why it is not covered, the first that holds; null when it is.'),
  reasonDetail: ReasonDetail.nullable(),
  observedSince: wireTime.nullable().describe('Since when it is watched; null where nobody did in the window.'),
})

const Node = z.strictObject({
  node: z.string(),
  missing: missing('nodes'),
  alivePods: count.describe('In the namespace if one was asked for.'),
  watchedContainers: count.describe('Containers with a heartbeat that is not late; likewise.'),
  lastPodPostAt: wireTime.nullable(),
  factsAt: wireTime.nullable().describe('When it last said which platform it is.'),
  drainedAt: wireTime.nullable().describe('When it last posted its denials.'),
  reasonDetail: ReasonDetail.nullable().describe('The container that is watched without a probe; else null.'),
})

const Workload = z.strictObject({
  namespace: z.string(),
  kind: z.string(),
  name: z.string(),
  missing: missing('workloads'),
  captureLevel: z.enum(LEVELS).nullable().describe('Null where no syscall was observed.'),
  incompletePods: count.describe('Pods that contributed below `full`.'),
  denialsReason: z.enum(DENIAL_REASONS).nullable().describe('Why its denials are null; null where they are known.'),
  denialsReasonDetail: ReasonDetail.nullable(),
})

const listOf = <P extends Part>(part: P, item: z.ZodType) =>
  z
    .strictObject({
      totals: z
        .strictObject({
          total: count,
          known: count.describe('Those of which nothing is missing.'),
          missing: z.strictObject(
            Object.fromEntries(MISSING[part].map((code) => [code, count])) as Record<
              (typeof MISSING)[P][number],
              typeof count
            >,
          ),
        })
        .nullable()
        .describe(
          'Of the whole namespace or cluster. Null with `totals=false`, on the pages after the first, and where there ' +
            'are too many to count.',
        ),
      items: z.array(item),
      nextAfter: z.string().nullable().describe('The `after` of the next page of this part; null on the last one.'),
    })
    .nullable()
    .describe('Null where another part was asked for.')

export const CoverageReport = z
  .strictObject({
    namespace: z.string().nullable().describe('Null for the cluster.'),
    olderThanDays: z.int().min(1),
    windowHours: z.int().min(1),
    runningWindowSeconds: count,
    images: listOf('images', Image).describe('Each running image once, by digest.'),
    containers: listOf('containers', Container).describe(
      'Each running container and image once, by namespace, kind, name, container and digest.',
    ),
    nodes: listOf('nodes', Node).describe('By name.'),
    workloads: listOf('workloads', Workload).describe('Each running workload once, by namespace, kind and name.'),
  })
  .meta({ id: 'CoverageReport' })
