import { type Profile, workloadName } from './profile.ts'

/** Everything that limits what the rows say. */
export function saidOfProfile(profile: Profile): string[] {
  const { dimensions, drift, snapshotPending, workload } = profile
  const partial = Object.entries(dimensions)
    .filter(([, { coverage }]) => coverage.level === 'partial')
    .map(([name, { coverage }]) => `${name} is partial${coverage.note === '' ? '' : `: ${coverage.note}`}`)
  const cut = (['network', 'images', 'compute'] as const)
    .filter((name) => dimensions[name].truncated)
    .map((name) => `${name}: the broker does not list all`)
  const notEvaluated = drift.notEvaluated.map(
    ({ type, container, reason }) =>
      `drift not evaluated: ${type}: ${container === null ? '' : `${container}: `}${reason}`,
  )
  return [
    ...(workload.pods.live === 0 ? [`${workloadName(profile)} has no live pod`] : []),
    ...(snapshotPending ? ['the state is newer than the stored version'] : []),
    ...partial,
    ...cut,
    ...notEvaluated,
  ]
}
