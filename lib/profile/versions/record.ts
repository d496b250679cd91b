/** The answers about the versions of a profile (docs/contract.md#workload-profiles). Keys are sorted. */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { digestText } from '../../images/index.ts'
import { CORE_DIMENSIONS, status } from '../record/common.ts'
import { LEVELS } from '../record/pod-security.ts'
import { contentHash, Posture } from '../record/profile.ts'

const revision = z.int().min(1)
const names = z.array(z.string())
const workload = { kind: z.string(), name: z.string(), namespace: z.string() }

const DimensionHashes = z
  .strictObject({ images: contentHash, network: contentHash, podSecurity: contentHash, syscalls: contentHash })
  .meta({ id: 'ProfileHashes', description: 'As `contentHash`, of each part of the snapshot.' })

/** The posture at the time of a version. */
const VersionPosture = z.strictObject({ coverage: Posture.shape.coverage, status })
export type VersionPosture = z.output<typeof VersionPosture>

const Version = z.strictObject({
  changedDimensions: z
    .array(z.enum(CORE_DIMENSIONS))
    .nullable()
    .describe('What differs from the revision before; null where that is gone.'),
  contentHash,
  createdAt: zonedTime,
  dimensionHashes: DimensionHashes,
  posture: VersionPosture,
  revision,
})
export type Version = z.output<typeof Version>

export const VersionPage = z
  .strictObject({
    items: z.array(Version).describe('The newest first.'),
    kind: workload.kind,
    name: workload.name,
    namespace: workload.namespace,
    nextBefore: revision.nullable().describe('`before` of the next page; null on the last one.'),
  })
  .meta({ id: 'ProfileVersionPage' })
export type VersionPage = z.output<typeof VersionPage>

export const WholeVersion = z
  .strictObject({
    contentHash,
    createdAt: zonedTime,
    dimensionHashes: DimensionHashes,
    ...workload,
    posture: VersionPosture,
    revision,
    snapshot: z
      .record(z.string(), z.unknown())
      .describe('`images`, `network`, `podSecurity` and `syscalls` without times, counts and verdicts.'),
  })
  .meta({ id: 'ProfileVersion' })

/** Null: unchanged. */
export type Change<T> = { readonly from: T | null; readonly to: T | null } | null
export const changed = <S extends z.ZodType>(value: S) =>
  z.strictObject({ from: value.nullable(), to: value.nullable() }).nullable().describe('Null where it is the same.')

const FieldChange = z
  .strictObject({
    field: z.string().describe('A dotted path, such as `securityContext.privileged`.'),
    from: z.unknown().describe('Null also where it is absent; lists are whole.'),
    to: z.unknown(),
  })
  .meta({ id: 'ProfileFieldChange' })
export type FieldChange = z.output<typeof FieldChange>

const Rule = z
  .strictObject({
    direction: z.enum(['ingress', 'egress']),
    peer: z.string(),
    port: z.int().nullable(),
    protocol: z.string(),
  })
  .meta({ id: 'ProfileRule' })
const ContainerNames = { containersAdded: names, containersRemoved: names }

/** The changes of pod security between two snapshots. */
export const podSecurityChanges = {
  containers: z.array(z.strictObject({ fields: z.array(FieldChange), name: z.string() })),
  ...ContainerNames,
  level: changed(z.enum(LEVELS)),
  pod: z.array(FieldChange),
}
export const SeccompResource = z.strictObject({ defaultAction: z.string(), hash: z.string(), name: z.string() })

const DiffDimensions = z.strictObject({
  images: z.strictObject({
    changed: z.boolean(),
    containers: z.array(z.strictObject({ added: z.array(digestText), name: z.string(), removed: z.array(digestText) })),
    ...ContainerNames,
  }),
  network: z.strictObject({ added: z.array(Rule), changed: z.boolean(), removed: z.array(Rule) }),
  podSecurity: z.strictObject({ changed: z.boolean(), ...podSecurityChanges }),
  syscalls: z.strictObject({
    added: names,
    captureLevel: changed(z.string()),
    changed: z.boolean(),
    cr: changed(SeccompResource),
    removed: names,
  }),
})
export type DiffDimensions = z.output<typeof DiffDimensions>

const VersionName = z.strictObject({ contentHash, createdAt: zonedTime, revision })

export const ProfileDiff = z
  .strictObject({
    changed: z.boolean(),
    dimensions: DiffDimensions.describe('Of containers on one side only, just the names.'),
    from: VersionName.nullable().describe('Null: there is no older version, and everything was added.'),
    fromTrimmed: z.boolean().describe('Whether the version before `to` was deleted, so that an older one is compared.'),
    ...workload,
    to: VersionName,
  })
  .meta({ id: 'ProfileDiff' })
export type ProfileDiff = z.output<typeof ProfileDiff>
