/** A trial of policies for people: what they would have denied, like the removed lines of a diff. */
import type { PolicyTrial } from '../../lib/policies/trial-record.ts'

export type Trial = PolicyTrial
type Side = Trial['deniedEdges'][number]['from']

const RED = '\u001b[31m'
const YELLOW = '\u001b[33m'
const PLAIN = '\u001b[0m'

export function trialText(trial: Trial, isColoured: boolean, clean: (text: string) => string): string {
  const coloured = (colour: string, text: string) => (isColoured ? `${colour}${text}${PLAIN}` : text)
  const denied = trial.deniedEdges.flatMap(({ from, to, port, protocol, flows, lastNewAt, deniedBy }) => [
    coloured(
      RED,
      clean(`- ${sideText(from)} -> ${sideText(to)} ${port}/${protocol}  ${flows} flows, last new ${lastNewAt}`),
    ),
    ...deniedBy.map(({ direction, policy, path, why }) => clean(`    ${direction}, ${policy} ${path ?? ''}: ${why}`)),
  ])
  const unknown = trial.unknownReasons.map(({ reason, edges }) =>
    coloured(YELLOW, clean(`? ${edges} edges: ${reason}`)),
  )
  const policies = trial.policies.map(({ namespace, name, workloads, evaluated, denied: own, unknown: open }) =>
    clean(
      `  ${namespace}/${name}: ${counted(workloads.length, 'workload')}, ${counted(evaluated, 'edge')}` +
        `${own > 0 ? `, ${own} denied` : ''}${open > 0 ? `, ${open} unknown` : ''}`,
    ),
  )
  const { evaluated, allowed, unknown: open, moreDenied, observedSince, labelsAsOf } = trial
  return `${[
    ...policies,
    '',
    ...denied,
    ...(moreDenied > 0 ? [coloured(RED, `- ${moreDenied} more edges`)] : []),
    ...unknown,
    ...(denied.length + unknown.length > 0 ? [''] : []),
    `${counted(evaluated, 'edge')}: ${allowed} allowed, ${trial.denied} denied, ${open} unknown`,
    `observed since ${observedSince ?? 'never'}, labels as of ${labelsAsOf ?? 'never'}`,
  ].join('\n')}\n`
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

function sideText({ kind, namespace, name, workload, ip }: Side): string {
  if (kind === 'workload') return `${namespace}/${workload}`
  if (kind === 'pod') return `${namespace}/Pod/${name}`
  return kind === 'service' ? `service ${namespace}/${name}` : `${kind} ${ip ?? ''}`
}
