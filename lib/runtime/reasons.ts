/** Why a container that is watched is not covered, the first that holds (docs/contract.md#runtime-coverage). */
export const WATCHED_REASONS = [
  'probes_missing',
  'libraries_not_tracked',
  'events_dropped',
  'events_pending',
  'incomplete_paths',
  'capture_gap',
] as const

/** Why a container is not covered, in the order in which the reasons are looked for. */
export const RUNTIME_REASONS = ['no_runtime_data', ...WATCHED_REASONS] as const
