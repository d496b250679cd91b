import { z } from 'zod'
import { zonedTime } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { fromPostgres } from '../time/timestamp.ts'

/** Why it is not known whether anything was denied (docs/contract.md#denials). */
export const DENIAL_REASONS = ['no_node_watching', 'unattributed_in_cluster', 'unattributed_denials'] as const

const MAX_SYSCALLS = 50
const MAX_ACTIONS = 16

/** The stored denials of a workload, added up (docs/contract.md#denials). */
export const DenialRollup = z
  .strictObject({
    total: documentedAs(z.int().min(0), {
      type: 'integer',
      format: 'int64',
      minimum: 0,
      description: 'All events; 0 where nothing was denied.',
    }),
    syscalls: z
      .array(z.string())
      .max(MAX_SYSCALLS)
      .describe('Sorted; of a cluster with very many, each workload shows some.'),
    actions: z.array(z.string()).max(MAX_ACTIONS).describe('Sorted.'),
    lastSeen: zonedTime.nullable().describe('Null where nothing was denied.'),
  })
  .meta({ id: 'SeccompDenialRollup' })

export interface RollupRow {
  readonly is_known: boolean
  /** Decimal digits, since a sum may exceed 2^53. This field and the following ones are null without denials. */
  readonly denied: string | null
  readonly denied_syscalls: readonly string[] | null
  readonly denied_actions: readonly string[] | null
  readonly last_denied: string | null
}

/** The rollup of a workload whose denials are not known. */
export const UNKNOWN: RollupRow = {
  is_known: false,
  denied: null,
  denied_syscalls: null,
  denied_actions: null,
  last_denied: null,
}

/** The rollup as JSON. */
export function rollupJson({ is_known, denied, denied_syscalls, denied_actions, last_denied }: RollupRow): string {
  if (!is_known) return 'null'
  const lastSeen = last_denied === null ? 'null' : `"${fromPostgres(last_denied)}Z"`
  const [syscalls, actions] = [JSON.stringify(denied_syscalls ?? []), JSON.stringify(denied_actions ?? [])]
  return `{"total":${denied ?? '0'},"syscalls":${syscalls},"actions":${actions},"lastSeen":${lastSeen}}`
}
