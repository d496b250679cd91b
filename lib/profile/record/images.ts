/** The images of a workload in its profile (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { digestText } from '../../images/index.ts'
import { count, envelope } from './common.ts'
import { containerKind } from './pod-security.ts'

export const MAX_DIGESTS = 64
export const MAX_SIGNERS = 8
export const MAX_TRUST_RESULTS = 20
export const VERDICTS = ['invalid', 'unsigned', 'key_signed', 'unknown', 'verified'] as const
const verdict = z.enum(VERDICTS)

const Image = z.strictObject({
  digest: digestText,
  imageRef: z.string(),
  state: z.enum(['running', 'waiting', 'terminated']).nullable(),
  stateReason: z.string().nullable(),
  ranAsInit: z.boolean(),
  lastPodName: z.string().nullable(),
  firstSeen: zonedTime,
  lastSeen: zonedTime,
})

const Container = z.strictObject({
  name: z.string(),
  kind: containerKind,
  mixedDigests: z.boolean(),
  stale: z.boolean(),
  running: z.array(Image),
  previous: z.array(Image),
})
export type ImageContainer = z.output<typeof Container>

const Signer = z.union([
  z.strictObject({ signerKind: z.literal('keyless'), issuer: z.string(), san: z.string() }),
  z.strictObject({
    signerKind: z.literal('key'),
    keyName: z.string().nullable().describe('Null for a key without a name.'),
    keyFingerprint: z.string(),
  }),
])
export type Signer = z.output<typeof Signer>

const signers = {
  signers: z.array(Signer).max(MAX_SIGNERS),
  signersOmitted: z.int().min(1).optional().describe('How many more; absent where the list is whole.'),
}

/** The evaluator's answer for this workload. */
const ImageTrust = z.strictObject({
  available: z.boolean(),
  reason: z.string().optional().describe('Why it is not available; absent otherwise.'),
  evaluatedAt: z.string().nullable(),
  total: count,
  wouldDeny: count,
  unknown: count,
  trusted: count,
  policies: z.array(z.string()),
  results: z
    .array(
      z.strictObject({
        policy: z.string(),
        namespace: z.string(),
        workload: z.string(),
        container: z.string(),
        digest: z.string(),
        image: z.string(),
        verdict: z.string(),
        reason: z.string().optional(),
      }),
    )
    .max(MAX_TRUST_RESULTS),
  truncated: z.boolean(),
})
export type ProfileImageTrust = z.output<typeof ImageTrust>

const SupplyChain = z.strictObject({
  status: z.enum(['configured', 'not_configured']),
  verdict: z.enum([...VERDICTS, 'not_configured']),
  reason: z.string().nullable(),
  container: z.string().nullable(),
  digest: digestText.nullable(),
  ...signers,
  checkedAt: zonedTime.nullable(),
  counts: z.strictObject({
    verified: count,
    keySigned: count,
    unsigned: count,
    invalid: count,
    unknown: count,
    notChecked: count,
  }),
  imageTrust: ImageTrust.nullable().describe('Null when nothing runs.'),
  digests: z
    .array(
      z.strictObject({
        container: z.string(),
        digest: digestText,
        verdict: verdict.nullable().describe('Null for an image that was never checked.'),
        reason: z.string().nullable(),
        ...signers,
        checkedAt: zonedTime.nullable(),
      }),
    )
    .max(MAX_DIGESTS),
  truncated: z.boolean(),
})
export type SupplyChain = z.output<typeof SupplyChain>

/** The distinct vulnerabilities of the images that run. */
const Vulnerabilities = z.strictObject({
  critical: count,
  high: count,
  medium: count,
  low: count,
  negligible: count.describe('Of severity `NONE`.'),
  unknown: count.describe('Without a rating.'),
  fixable: count.describe('Those with a fixed version.'),
  inUse: count.describe('Those in a package of which a running container executed or loaded a file.'),
  tiers: z
    .strictObject({ P0: count, P1: count, P2: count, Background: count })
    .describe('By their most urgent tier in the running containers of this workload.'),
  scannedDigests: z.int().min(1).describe('All running digests: each has a report.'),
  oldestScanAt: zonedTime.describe('Of the reports that answer for them.'),
})
export type Vulnerabilities = z.output<typeof Vulnerabilities>

export const Images = z
  .strictObject({
    ...envelope,
    runningWindowSeconds: z.int(),
    containers: z.array(Container),
    truncated: z.boolean().describe('Whether the inventory has more rows than were read.'),
    vulnerabilities: Vulnerabilities.nullable().describe('Null when nothing runs, or a running digest has no report.'),
    supplyChain: SupplyChain.nullable().describe('Null when nothing runs.'),
  })
  .meta({ id: 'ProfileImages' })
export type Images = z.output<typeof Images>
