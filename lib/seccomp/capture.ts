import { z } from 'zod'

/**
 * Capture tiers in the order of the database function `capture_rank`, which returns the index: later tiers miss more.
 */
export const LEVELS = ['full', 'high', 'medium', 'low', 'unknown', 'custom'] as const

const level = z.enum(LEVELS)

/** How completely the syscalls of a workload were captured (docs/contract.md#seccomp-profiles). */
export const Capture = z
  .strictObject({
    level: level.describe('The lowest tier of all pods that contributed.'),
    complete: z.boolean().describe('Whether there is a contributor, and every one is `full`.'),
    pods: z
      .array(z.strictObject({ name: z.string(), level }))
      .describe('The contributors, the worst first, at most 20.'),
    more: z.int().describe('Contributors that are not listed.'),
    incomplete: z.int().describe('Contributors below `full`.'),
  })
  .meta({ id: 'SyscallCapture' })
export type Capture = z.output<typeof Capture>

/** A row of the database function `workload_capture`, its arrays converted with `to_json`. */
export interface CaptureRow {
  readonly worst: number | null
  readonly pods: number
  readonly incomplete: number
  readonly names: readonly string[] | null
  readonly ranks: readonly number[] | null
}

export function captureOf({ worst, pods, incomplete, names, ranks }: CaptureRow): Capture {
  const listed = (names ?? []).map((name, i) => ({ name, level: LEVELS[ranks![i]!]! }))
  return {
    level: worst === null ? 'unknown' : LEVELS[worst]!,
    complete: pods > 0 && incomplete === 0,
    pods: listed,
    more: pods - listed.length,
    incomplete,
  }
}
