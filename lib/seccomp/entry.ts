/** An entry of GET /seccomp/profiles, built from the rows of a workload (docs/contract.md#seccomp-profiles). */
import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { fromPostgres } from '../time/timestamp.ts'
import { Capture, type CaptureRow, captureOf } from './capture.ts'
import {
  Distribution,
  distributionOf,
  type PlacedRow,
  StatusDistribution,
  statusDistributionOf,
} from './distribution.ts'
import { Drift, driftOf, IN_SYNC } from './drift.ts'
import { localhostProfile, profileArchitectures, suggestedName } from './names.ts'
import { DenialRollup, type RollupRow, rollupJson } from './rollup.ts'

const count = z.int().min(0)

/** The mirrored custom resource of a workload (docs/contract.md#seccomp-profiles). */
const MirroredResource = z
  .strictObject({
    name: z.string(),
    defaultAction: z.string().describe('`SCMP_ACT_LOG` audits, anything else enforces.'),
    hash: z.string().describe('The hash of its status; may be empty, then no node is ready.'),
    syscallCount: count.describe('Names that its rules allow.'),
    architectures: z.array(z.string()),
    localhostProfile: z.string(),
    distribution: Distribution,
    statusDistribution: StatusDistribution.nullable().describe('As its status has it; null until that was written.'),
    drift: Drift,
    updatedAt: wireTime.describe('When anything of it changed last.'),
  })
  .meta({ id: 'SeccompResource' })

/** The observed syscalls of a workload, without its custom resource and denials (docs/contract.md#seccomp-profiles). */
export const ProfileSummary = z
  .strictObject({
    namespace: z.string(),
    kind: z.string(),
    name: z.string(),
    hash: z.string().describe('The hash of the observed set; changes when that grows.'),
    syscallCount: count,
    architectures: z.array(z.string()),
    updatedAt: wireTime.describe('When the observed set changed last.'),
    capture: Capture,
    captureComplete: z.boolean(),
    suggestedName: z.string().describe('The name of an exported profile unless it is overridden.'),
    recommendedSnippet: z.strictObject({
      seccompProfile: z.strictObject({ type: z.literal('Localhost'), localhostProfile: z.string() }),
    }),
    crCount: count.describe('Custom resources that refer to the workload.'),
    cr: MirroredResource.nullable().describe('The one of them that was updated last.'),
    denials: DenialRollup.nullable().describe('Null where it is not known whether anything was denied.'),
  })
  .meta({ id: 'SeccompProfileSummary' })

/** A workload as the database returns it, without its denials. The `cr_` columns are null without a custom resource. */
export interface EntryRow extends CaptureRow, PlacedRow {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly hash: string
  readonly syscall_count: number
  readonly arches: readonly string[]
  readonly updated_at: string
  readonly cr_count: number
  readonly cr_name: string | null
  readonly cr_action: string
  readonly cr_syscall_count: number
  readonly cr_architectures: readonly string[]
  readonly cr_updated_at: string
  /**
   * The observed names and those that the resource allows, comma-joined and sorted by bytes; both null if they are
   * equal.
   */
  readonly observed: string | null
  readonly allowed: string | null
}

/** The JSON of an entry without its closing brace; `directory` is the folder of the profiles on the nodes. */
export function openEntry(row: EntryRow, denials: RollupRow, directory: string): string {
  const { namespace, kind, name } = row
  const capture = captureOf(row)
  const suggested = suggestedName(row)
  const profile = localhostProfile(directory, namespace, row.cr_name ?? suggested)
  const entry = JSON.stringify({
    namespace,
    kind,
    name,
    hash: row.hash,
    syscallCount: row.syscall_count,
    architectures: profileArchitectures(row.arches),
    updatedAt: fromPostgres(row.updated_at),
    capture,
    captureComplete: capture.complete,
    suggestedName: suggested,
    recommendedSnippet: { seccompProfile: { type: 'Localhost', localhostProfile: profile } },
    crCount: row.cr_count,
    cr: resourceOf(row, profile),
  })
  return `${entry.slice(0, -1)},"denials":${rollupJson(denials)}`
}

function resourceOf(row: EntryRow, profile: string): z.output<typeof MirroredResource> | null {
  if (row.cr_name === null) return null
  return {
    name: row.cr_name,
    defaultAction: row.cr_action,
    hash: row.cr_hash,
    syscallCount: row.cr_syscall_count,
    architectures: [...row.cr_architectures],
    localhostProfile: profile,
    distribution: distributionOf(row),
    statusDistribution: statusDistributionOf(row),
    drift: row.observed === null ? IN_SYNC : driftOf(row.observed, row.allowed!),
    updatedAt: fromPostgres(row.cr_updated_at),
  }
}
