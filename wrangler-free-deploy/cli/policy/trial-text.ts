/** A trial of policies for people: what they would have denied, like the removed lines of a diff. */

import type { PolicyTrial } from '../../../lib/policies/trial-record.ts'
import { oneLine } from '../../../lib/text/one-line.ts'
import { columnsOf, counted, wrapped } from '../output/lines.ts'
import { type Documents, placeOf } from './documents.ts'

export type Trial = PolicyTrial
type Edge = Trial['deniedEdges'][number]
type Side = Edge['from']

export interface Shape {
  /** The columns of the terminal; null to cut and wrap nothing. */
  readonly width: number | null
  readonly isColoured: boolean
}

const RED = '\u001b[31m'
const YELLOW = '\u001b[33m'
const PLAIN = '\u001b[0m'
/** Workloads of a policy that are named. */
const MAX_NAMED = 3
const HANGING = '    '
const WHY = '      '

export function trialText(trial: Trial, documents: Documents, { width, isColoured }: Shape): string {
  const coloured = (colour: string, lines: readonly string[]) =>
    isColoured ? lines.map((line) => `${colour}${line}${PLAIN}`) : lines
  // Cleaned as a whole: no name of a cluster can begin a line.
  const sentence = (text: string, indent = HANGING) => wrapped(oneLine(text), width, indent)

  const { evaluated, allowed, denied, unknown, moreDenied, observedSince, labelsAsOf } = trial
  const blocks: (readonly string[])[] = [
    columnsOf(policyRows(trial, documents), width),
    [
      ...trial.deniedEdges.flatMap((edge) => [
        ...coloured(RED, sentence(edgeText(edge))),
        ...edge.deniedBy.flatMap((side) => sentence(`${HANGING}${denialText(side)}`, WHY)),
      ]),
      ...(moreDenied > 0 ? coloured(RED, [`- ${moreDenied} more, which the broker does not list`]) : []),
    ],
    trial.unknownReasons.flatMap(({ reason, edges }) =>
      coloured(YELLOW, sentence(`? ${counted(edges, 'edge')} unknown: ${reason}`)),
    ),
    [
      `${counted(evaluated, 'edge')} evaluated: ${allowed} allowed, ${denied} denied, ${unknown} unknown`,
      ...sentence(
        `edges observed since ${observedSince === null ? 'never' : instant(observedSince)}, ` +
          `labels as of ${labelsAsOf === null ? 'never' : instant(labelsAsOf)}`,
      ),
    ],
  ]
  const shown = blocks.filter((lines) => lines.length > 0)
  return `${shown.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

/** A line for each policy; its file only where there are several. */
function policyRows({ policies }: Trial, documents: Documents): string[][] {
  const withFile = (file: string) => (documents.parts.length > 1 ? [file] : [])
  return [
    ['POLICY', 'ISOLATES', 'EDGES', 'DENIED', 'UNKNOWN', ...withFile('FILE'), 'WORKLOADS'],
    ...policies.map(({ document, namespace, name, directions, evaluated, denied, unknown, workloads }) =>
      [
        `${namespace}/${name}`,
        directions.join(',') || 'nothing',
        ...[evaluated, denied, unknown].map(String),
        ...withFile(placeOf(documents, document).name),
        namesOf(workloads),
      ].map(oneLine),
    ),
  ]
}

function namesOf(workloads: readonly string[]): string {
  if (workloads.length === 0) return 'none that is known'
  const more = workloads.length - MAX_NAMED
  return [...workloads.slice(0, MAX_NAMED), ...(more > 0 ? [`${more} more`] : [])].join(', ')
}

const edgeText = ({ from, to, port, protocol, flows, lastNewAt }: Edge): string =>
  `- ${sideText(from)} -> ${sideText(to)} ${port}/${protocol}  ` +
  `${counted(flows, 'flow')}, last new ${instant(lastNewAt)}`

const denialText = ({ direction, policy, path, why }: Edge['deniedBy'][number]): string =>
  `${direction}: policy ${policy}${path === null ? '' : ` ${path}`}: ${why}`

function sideText({ kind, namespace, name, workload, ip }: Side): string {
  if (kind === 'workload') return `${namespace}/${workload}`
  if (kind === 'pod') return `${namespace}/Pod/${name}`
  return kind === 'service' ? `${namespace}/Service/${name}` : `${kind} ${ip ?? ''}`
}

/** To the second; times of the API are UTC without a zone. */
const instant = (time: string): string => `${time.slice(0, 'yyyy-mm-ddThh:mm:ss'.length)}Z`
