import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/digest.ts'
import { documentedAs } from '../openapi/declare.ts'
import { usage } from './in-use.ts'
import { imageJoin } from './reports.ts'
import { severityName } from './severity.ts'

export const VULNERABILITY = /^[A-Za-z0-9._:-]{1,128}$/
export const VULNERABILITY_RULE = 'expected 1 to 128 letters, digits, dots, underscores, colons and hyphens'

/** The id of a vulnerability in a path (docs/contract.md#findings). */
export const vulnerabilityId = documentedAs(z.string().regex(VULNERABILITY, VULNERABILITY_RULE), {
  type: 'string',
  pattern: VULNERABILITY.source,
  description: 'The id of a vulnerability, or one of its aliases, in any case.',
})

const sources = z.array(z.string())
const count = z.int().min(0)

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
  join: imageJoin,
  severity: severityName,
  packages: z.array(Package).max(50),
})

const Network = z.strictObject({
  windowHours: z.int().min(1).max(720),
  podsObserved: count.max(50),
  flowsObserved: count,
  ingressFlowsObserved: count,
  ingressFromOtherNamespaces: count.describe('Number of distinct workloads and services of other namespaces.'),
  ingressFromUnattributedPeers: count.describe('Number of distinct addresses of no known pod, service or node.'),
  ingressFromPublicIps: count.describe('Number of these that are publicly routable.'),
  ingressFromNodes: count.describe('Number of distinct addresses of nodes and of pods in the network of a node.'),
  exposed: z
    .boolean()
    .nullable()
    .describe('Null if no ingress was seen, or if a flow had no peer address and nothing else proves exposure.'),
  exposedVia: z.array(z.enum(['other_namespace', 'unattributed', 'public_ip', 'node'])),
})

const Workload = z.strictObject({
  clusterId: z.string(),
  namespace: z.string(),
  kind: z.string(),
  name: z.string(),
  container: z.string(),
  imageDigest: digestText,
  join: imageJoin,
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
    id: z.string().describe('As in the path.'),
    aliases: z.array(z.string()).describe('Its other ids, from any report.'),
    severity: severityName.describe('The highest among the listed images.'),
    fixable: z.boolean(),
    images: z.array(Image).min(1).max(200),
    workloads: z.array(Workload).max(200),
    namespaces: z.array(Namespace).max(200),
    truncated: z.boolean().describe('Whether some images, workload containers or packages are left out.'),
    truncatedLists: z.array(z.enum(['images', 'packages', 'workloads'])).describe('The lists that were cut.'),
    ...usage,
  })
  .meta({ id: 'Exposure' })
