/** The answers about changes (docs/contract.md#changes). Times are naive UTC. */
import { z } from 'zod'
import { verdict as attestationVerdict } from '../attestations/index.ts'
import { Signer } from '../attestations/result-list.ts'
import { reason as attestationReason } from '../attestations/stored-result.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/index.ts'
import { CHECKS, LEVELS } from '../profile/record/pod-security.ts'
import { changed, podSecurityChanges, SeccompResource } from '../profile/versions/index.ts'
import { KINDS, ORIGINS } from '../runtime/executables/index.ts'
import { tierName } from '../supply-chain/in-use.ts'
import { severityName } from '../supply-chain/severity.ts'
import { PARTS, REASONS } from './not-known.ts'
import { SIGNALS } from './order.ts'

/** Items of each list of a diff. */
export const MAX_ITEMS = 500
/** Facts of each kind of a workload in GET /changes. */
export const MAX_FACTS = 5

const count = z.int().min(0)
const digests = z.array(digestText)

const list = <S extends z.ZodType>(item: S) =>
  z.strictObject({
    items: z.array(item).max(MAX_ITEMS),
    total: count,
    truncated: z.boolean().describe('Whether there are more than are listed.'),
  })

export const ChangeGap = z
  .strictObject({
    part: z.enum(PARTS),
    reason: z.enum(REASONS),
    container: z.string().nullable().describe('The container that it is about; null for all.'),
    digest: digestText.nullable().describe('The image that it is about; null for all.'),
  })
  .meta({ id: 'ChangeGap', description: 'Why a part is null, or says nothing of a container or an image.' })

const notKnown = z.array(ChangeGap).describe('A part that is null has its reasons here: it is unknown, not unchanged.')

const identity = {
  name: z.string(),
  purl: z.string().nullable().describe('Without version and qualifiers.'),
  type: z.string().nullable().describe('Null where there is a purl.'),
}
const version = z.string().nullable()
const OneSided = z.strictObject({ ...identity, version, count: z.int().min(1) }).meta({ id: 'ComponentOnOneSide' })
const sources = z.array(z.string()).describe('The sources that all compared images have: only these are compared.')

const Components = z
  .strictObject({
    sources,
    added: list(OneSided),
    removed: list(OneSided),
    changed: list(z.strictObject({ ...identity, from: version, to: version, count: z.int().min(1) })),
  })
  .meta({ id: 'ComponentChanges' })

const FindingSide = z
  .strictObject({
    severity: severityName,
    installedVersions: z.array(z.string()),
    fixedVersions: z.array(z.string()),
  })
  .meta({ id: 'FindingOnOneSide' })
const findingFields = {
  id: z.string(),
  package: z.string(),
  kev: z.boolean().nullable(),
  epss: z.number().nullable(),
  from: FindingSide.nullable(),
  to: FindingSide.nullable(),
}
const findings = <S extends z.ZodType>(item: S) =>
  z.strictObject({ sources, came: list(item), went: list(item), changed: list(item) })

const tier = tierName.nullable().describe('Of the vulnerability in this workload; null where it was not counted.')
const inUse = z.literal(true).nullable().describe('True where a container ran a file of a package that has it.')

const Signature = z
  .strictObject({
    digest: digestText,
    verdict: attestationVerdict.nullable().describe('Null: not checked, or no longer kept. It is not unsigned.'),
    reason: attestationReason,
    signers: z.array(Signer),
    checkedAt: wireTime.nullable(),
  })
  .meta({ id: 'SignatureOfImage' })

const file = {
  kind: z.enum(KINDS),
  path: z.string(),
  pathComplete: z.boolean(),
}
const ImageFile = z.strictObject({ ...file, firstSeen: wireTime, lastSeen: wireTime }).meta({ id: 'FileOfOneImage' })

/** GET /images/{digest}/diff/{other}. */
export const ImageDiff = z
  .strictObject({
    from: digestText,
    to: digestText,
    components: Components.nullable(),
    findings: findings(z.strictObject(findingFields).meta({ id: 'ImageFindingChange' })).nullable(),
    signatures: z.strictObject({ from: Signature, to: Signature }),
    files: z
      .strictObject({ onlyFrom: list(ImageFile), onlyTo: list(ImageFile) })
      .nullable()
      .describe('Files that ran in one of them, if both were watched.'),
    notKnown,
  })
  .meta({ id: 'ImageDiff' })
export type ImageDiff = z.output<typeof ImageDiff>

const container = z.string()
const Rollout = z
  .strictObject({ at: wireTime, container, digest: digestText, imageRef: z.string() })
  .meta({ id: 'Rollout' })

const Images = z.strictObject({
  fromSeenAt: wireTime.describe('`from`, or the last time before it at which the workload was seen.'),
  toSeenAt: wireTime,
  containers: z
    .array(z.strictObject({ container, from: digests, to: digests }))
    .describe('Digests that ran at both times; none where the workload did not have the container.'),
  rollouts: list(Rollout).describe('Images that were first seen in the range, the oldest first.'),
})

const Edge = z
  .strictObject({
    direction: z.enum(['ingress', 'egress']),
    protocol: z.string(),
    port: z.string().nullable().describe('Of the server, as reported.'),
    verdict: z.string().nullable(),
    peer: z.strictObject({
      kind: z.enum(['pod', 'service', 'node', 'external', 'unresolved']),
      namespace: z.string().nullable(),
      workloadKind: z.string().nullable(),
      workloadName: z.string().nullable(),
      name: z.string().nullable(),
      ip: z.string().nullable(),
    }),
    firstSeenAt: wireTime,
    lastNewAt: wireTime,
  })
  .meta({ id: 'ChangedEdge' })

const Edges = z.strictObject({
  firstSeen: list(Edge).describe('The newest first.'),
  goneQuiet: list(Edge).describe('No new flow since `from`, and no pod that reported one lives.'),
  maybeQuiet: count.describe('Edges without a new flow since `from` of pods that live: they may be in use.'),
})

const FirstFile = z
  .strictObject({
    container,
    ...file,
    origin: z.enum(ORIGINS),
    firstSeen: wireTime,
    lastSeen: wireTime,
    digests: z.array(z.string()).describe('The images in which it ran; empty text for an unknown one.'),
  })
  .meta({ id: 'FirstFile' })

const FirstSyscall = z.strictObject({ name: z.string(), at: wireTime })
const Syscalls = z.strictObject({
  firstSeen: list(FirstSyscall).describe('The newest first.'),
  isComplete: z.boolean().describe('Whether the capture of the set is complete.'),
  onlyBefore: list(z.string()).nullable().describe('Made by images that no longer run, and by none that runs at `to`.'),
})

const Weakened = z
  .strictObject({
    container: z.string().nullable().describe('Null for the pod.'),
    newlyFailing: z.array(z.enum(CHECKS)),
    levelFrom: z.enum(LEVELS),
    levelTo: z.enum(LEVELS),
  })
  .meta({ id: 'WeakenedContext' })
const Confinement = z.strictObject({
  fromRevision: z
    .int()
    .min(1)
    .describe('The newest version of the profile at `from`; one from a time without containers only if all are.'),
  toRevision: z.int().min(1),
  podSecurity: z.strictObject(podSecurityChanges),
  seccompProfile: changed(SeccompResource),
  weakened: z.array(Weakened),
  isSeccompWeakened: z.boolean().describe('False also where the seccomp profile is not known at either time.'),
})

/** GET /workloads/{namespace}/{kind}/{name}/diff. */
export const WorkloadDiff = z
  .strictObject({
    namespace: z.string(),
    kind: z.string(),
    name: z.string(),
    from: wireTime,
    to: wireTime,
    images: Images.nullable(),
    components: Components.nullable().describe('Between the images of one side only.'),
    findings: findings(z.strictObject({ ...findingFields, tier, inUse }).meta({ id: 'WorkloadFindingChange' }))
      .nullable()
      .describe('Between the images of one side only.'),
    signatures: z
      .strictObject({ before: z.array(Signature), after: z.array(Signature) })
      .nullable()
      .describe('Of the images of one side only.'),
    edges: Edges.nullable(),
    files: z.strictObject({ firstRun: list(FirstFile) }).nullable(),
    syscalls: Syscalls.nullable(),
    confinement: Confinement.nullable(),
    notKnown,
  })
  .meta({ id: 'WorkloadDiff' })
export type WorkloadDiff = z.output<typeof WorkloadDiff>

const counted = count.nullable()
const few = <S extends z.ZodType>(item: S) => z.array(item).max(MAX_FACTS)

const ChangedWorkload = z
  .strictObject({
    kind: z.string(),
    name: z.string(),
    signals: z.array(z.enum(SIGNALS)).describe('The most telling first.'),
    changes: count.describe('All that is counted below; what is null counts as none.'),
    counts: z.strictObject({
      newImages: counted,
      untrustedImages: counted.describe('New ones that are unsigned, invalid, or signed with an unknown key.'),
      uncheckedImages: counted.describe('New ones whose signatures were not checked, or not to an end.'),
      findingsCame: z.strictObject({ P0: count, P1: count, P2: count, Background: count }).nullable(),
      urgentFindingsInUse: counted.describe('P0 and P1 that came, in packages that a container used.'),
      findingsWent: counted,
      newEdges: counted,
      exposingEdges: counted.describe('New ones from another namespace, or from a peer that is not known.'),
      outsideEdges: counted.describe('New ones to public addresses.'),
      unshippedFiles: counted.describe('Files outside of the image that ran for the first time.'),
      newSyscalls: counted,
      weakened: counted.describe('Pod or containers with weaker security contexts, and a weaker seccomp profile.'),
    }),
    facts: z.strictObject({
      images: few(Rollout),
      signatures: few(z.strictObject({ digest: digestText, verdict: attestationVerdict })),
      findings: few(z.strictObject({ id: z.string(), severity: severityName, tier: tierName, inUse })),
      edges: few(Edge),
      files: few(FirstFile),
      syscalls: few(FirstSyscall),
      weakened: few(Weakened),
    }),
    notKnown,
  })
  .meta({ id: 'ChangedWorkload' })
export type ChangedWorkload = z.output<typeof ChangedWorkload>

/** A page of GET /changes. */
export const ChangePage = z
  .strictObject({
    namespace: z.string(),
    from: wireTime,
    to: wireTime,
    items: z.array(ChangedWorkload).describe('The most telling first.'),
    total: count.describe('Workloads of the namespace.'),
    truncated: z.boolean().describe('Whether the namespace has more workloads than were looked at.'),
    nextAfter: z.string().nullable().describe('The `after` of the next page; null on the last one.'),
  })
  .meta({ id: 'ChangePage' })
export type ChangePage = z.output<typeof ChangePage>
