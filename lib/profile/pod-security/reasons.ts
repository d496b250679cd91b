/** Why a workload has its level (docs/contract.md#workload-profiles). */
import { quoted } from '../../text/yaml.ts'
import type { Reason } from '../record/common.ts'
import type { PodBlock } from './contexts.ts'
import type { Judgement } from './judgement.ts'
import { firstOf, listed } from './names.ts'

/** Of a workload with current containers. */
export function reasonsOf(
  pod: PodBlock,
  judgement: Judgement,
  unevaluated: number,
  stale: readonly string[],
): Reason[] {
  const ephemeral = judgement.containers
    .filter(({ kind, failing }) => kind === 'ephemeral' && failing.length > 0)
    .map(({ name }) => name)
  const reasons: readonly (Reason | false)[] = [
    levelReason(judgement, unevaluated),
    !pod.known && {
      code: 'pod_fields_unknown',
      message: 'The fields of the pod were not reported, so what depends on them was not checked',
    },
    ephemeral.length > 0 && {
      code: 'ephemeral_unpatchable',
      message: `Ephemeral containers fail checks and cannot be patched: ${listed(ephemeral)}`,
    },
    stale.length > 0 && {
      code: 'stale_containers_excluded',
      message: `Containers that are no longer reported were not checked: ${listed(stale)}`,
    },
  ]
  return reasons.filter((reason) => reason !== false)
}

function levelReason({ level, pod, containers }: Judgement, unevaluated: number): Reason {
  if (level === 'restricted') {
    const message = `All checks that could be made pass restricted, but ${unevaluated} could not be made`
    return { code: 'pss_unverified', message }
  }
  const lowest = [
    ...(pod.level === level ? ['pod spec'] : []),
    ...containers.filter((container) => container.level === level).map(({ name, kind }) => `${quoted(name)} (${kind})`),
  ]
  return level === 'privileged'
    ? { code: 'pss_fails_baseline', message: `Level privileged, because baseline is failed by ${firstOf(lowest)}` }
    : {
        code: 'pss_fails_restricted',
        message: `At most level baseline, because restricted is failed by ${firstOf(lowest)}`,
      }
}

/** The reason of a workload without current containers, which has no level. */
export const noLevelReason = (hasStale: boolean): Reason =>
  hasStale
    ? { code: 'only_stale_containers', message: 'None of the known containers is still reported' }
    : { code: 'no_inventory', message: 'No agent has reported containers of this workload' }
