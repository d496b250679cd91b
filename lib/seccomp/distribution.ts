import { z } from 'zod'

const count = z.int().min(0)
const state = z.enum(['Ready', 'Partial', 'Pending'])

/** The number of live nodes that have the file of a custom resource (docs/contract.md#seccomp-distribution). */
export const Distribution = z
  .strictObject({
    ready: count.describe('Nodes that have it with the hash of the resource.'),
    total: count.describe('Nodes that reported their files lately, whatever they have.'),
    state,
    present: count.describe('Nodes that have it.'),
  })
  .meta({ id: 'SeccompDistribution' })

/** The distribution that the status of a custom resource states. */
export const StatusDistribution = z
  .strictObject({ ready: z.number(), total: z.number(), state: z.string() })
  .meta({ id: 'SeccompStatusDistribution' })

export interface PlacedRow {
  readonly cr_hash: string
  /** Number of live nodes; of these, nodes that have the file, and nodes whose file has the hash of the resource. */
  readonly live: number
  readonly present: number
  readonly ready: number
  readonly status_ready: number
  readonly status_total: number
  readonly status_state: string
}

export function distributionOf({ ready, live: total, present }: PlacedRow): z.output<typeof Distribution> {
  const state = total === 0 || ready === 0 ? 'Pending' : ready >= total ? 'Ready' : 'Partial'
  return { ready, total, state, present }
}

/** Null if no distribution was ever written. */
export function statusDistributionOf(row: PlacedRow): z.output<typeof StatusDistribution> | null {
  const { status_ready: ready, status_total: total, status_state: state } = row
  return ready === 0 && total === 0 && state === 'Pending' ? null : { ready, total, state }
}
