import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from './digest.ts'

const kind = z.enum(['init', 'regular', 'ephemeral'])
const state = z.enum(['running', 'waiting', 'terminated']).nullable()
const object = z.record(z.string(), z.unknown())

const image = {
  digest: digestText,
  repository: z.string().nullable(),
  tags: z.array(z.string()),
  digestKind: z.enum(['repo', 'config', 'pinned']),
  firstSeen: wireTime,
  lastSeen: wireTime,
}

/** An image in a page of GET /images. */
export const ImageSummary = z.strictObject({ ...image, runningContainers: z.int().min(0) })

/** A page of GET /images (docs/contract.md#images). */
export const ImagePage = z
  .strictObject({
    items: z.array(ImageSummary),
    nextAfter: digestText.nullable().describe('The `after` of the next page; null on the last one.'),
  })
  .meta({ id: 'ImagePage' })

export const ImageSelf = z.strictObject(image)

/** A container that runs or ran an image. */
export const ImageWorkload = z.strictObject({
  clusterId: z.string(),
  namespace: z.string(),
  workloadKind: z.string(),
  workloadName: z.string(),
  containerName: z.string(),
  containerKind: kind,
  imageRef: z.string(),
  firstSeen: wireTime,
  lastSeen: wireTime,
  state,
  stateReason: z.string().nullable(),
  ranAsInit: z.boolean(),
  running: z.boolean(),
})

/** GET /images/{digest}. */
export const ImageRecord = ImageSelf.extend({
  workloads: z.array(ImageWorkload),
  truncated: z.boolean().describe('Whether the list was cut at its limit.'),
}).meta({ id: 'ImageRecord' })

/** A digest that a container of a workload runs or ran. */
export const ContainerDigest = z
  .strictObject({
    digest: digestText,
    imageRef: z.string(),
    securityContext: object,
    podSecurity: object,
    lastPodName: z.string().nullable(),
    firstSeen: wireTime,
    lastSeen: wireTime,
    state,
    stateReason: z.string().nullable(),
    ranAsInit: z.boolean(),
  })
  .meta({ id: 'ContainerDigest' })

/** GET /workloads/{namespace}/{kind}/{name}/containers. */
export const WorkloadContainers = z
  .strictObject({
    namespace: z.string(),
    kind: z.string(),
    name: z.string(),
    runningWindowSeconds: z.int(),
    containers: z.array(
      z.strictObject({
        clusterId: z.string(),
        containerName: z.string(),
        containerKind: kind,
        mixedDigests: z.boolean(),
        digests: z.array(ContainerDigest),
        previousDigests: z.array(ContainerDigest),
      }),
    ),
    truncated: z.boolean().describe('Whether the list was cut at its limit.'),
  })
  .meta({ id: 'WorkloadContainers' })
