import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/digest.ts'
import { documentedAs } from '../openapi/declare.ts'
import { severityName } from './severity.ts'

export const VULNERABILITY = /^[A-Za-z0-9._:-]{1,128}$/
export const VULNERABILITY_RULE = 'expected 1 to 128 letters, digits, dots, underscores, colons and hyphens'

/** The id of a vulnerability in a path (interop-supply-chain 3.6). */
export const vulnerabilityId = documentedAs(z.string().regex(VULNERABILITY, VULNERABILITY_RULE), {
  type: 'string',
  pattern: VULNERABILITY.source,
  description: 'The id of a vulnerability, or one of its other ids, in any case.',
})

const sources = z.array(z.string())
const join = z.enum(['image_id', 'platform_manifest', 'workload_tag'])
const count = z.int().min(0)
const usage = { inUse: z.null(), inUseState: z.enum(['unknown']) }

const Package = z.strictObject({
  name: z.string(),
  installedVersion: z.string(),
  fixedVersions: z.array(z.string()),
  severity: severityName,
  sources,
})

const Image = z.strictObject({
  digest: digestText,
  repository: z.string().nullable(),
  tags: z.array(z.string()),
  sources,
  reportDigests: z.array(digestText),
  join,
  severity: severityName,
  packages: z.array(Package).max(50),
})

const Network = z.strictObject({
  windowHours: z.int().min(1).max(720),
  podsObserved: count.max(50),
  flowsObserved: count,
  ingressFlowsObserved: count,
  ingressFromOtherNamespaces: count.describe('Different pods, by their owner, and services of other namespaces.'),
  ingressFromUnattributedPeers: count.describe('Different addresses of no known pod, service or node.'),
  ingressFromPublicIps: count.describe('Those of them that the internet can route to.'),
  ingressFromNodes: count.describe('Different addresses of nodes and of pods in their network.'),
  exposed: z
    .boolean()
    .nullable()
    .describe(
      'Null when nothing was seen to come in, which proves nothing, and when nothing is against it but flows whose peer has no address.',
    ),
  exposedVia: z.array(z.enum(['other_namespace', 'unattributed', 'public_ip', 'node'])),
})

const Workload = z.strictObject({
  clusterId: z.string(),
  namespace: z.string(),
  kind: z.string(),
  name: z.string(),
  container: z.string(),
  imageDigest: digestText,
  join,
  running: z.boolean(),
  lastSeen: wireTime,
  network: Network,
  ...usage,
})

const Namespace = z.strictObject({
  namespace: z.string(),
  workloads: count,
  runningWorkloads: count,
  exposedWorkloads: count,
  unknownExposureWorkloads: count,
})

/** GET /vulnerabilities/{id}/exposure. */
export const Exposure = z
  .strictObject({
    id: z.string().describe('As asked.'),
    aliases: z.array(z.string()).describe('Its other ids, whichever report told.'),
    severity: severityName.describe('The highest in the images listed.'),
    fixable: z.boolean(),
    images: z.array(Image).min(1).max(200),
    workloads: z.array(Workload).max(200),
    namespaces: z.array(Namespace).max(200),
    truncated: z.boolean().describe('Whether there are more images, workload containers or packages than are listed.'),
    truncatedLists: z
      .array(z.enum(['images', 'packages', 'workloads']))
      .describe('The lists of which some is left out.'),
    ...usage,
  })
  .meta({ id: 'Exposure' })
