/** Why a container is not covered, in the order in which the reasons are looked for (docs/contract.md#runtime-coverage). */
export const RUNTIME_REASONS = [
  'no_runtime_data',
  'probes_missing',
  'libraries_not_tracked',
  'events_dropped',
  'events_pending',
  'incomplete_paths',
  'capture_gap',
] as const
