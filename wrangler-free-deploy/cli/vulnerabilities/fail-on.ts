/** `--fail-on`: whether there are findings that a pipeline has to stop for. */
import type { ListFlags } from '../list/listing.ts'
import { counted } from '../output/lines.ts'
import type { Judgement } from '../output/show.ts'
import type { FindingPage, VulnerabilityPage } from './columns.ts'

const REASONS = ['p0', 'kev', 'executed'] as const
type Reason = (typeof REASONS)[number]

export const failOnFlag = {
  ...({ kind: 'enum', values: REASONS, optional: true, variadic: ',' } as const),
  brief: 'Exit code 1 if a listed finding is so and not decided; may be repeated.',
}

/** Null is unknown. */
type Facts = Readonly<Record<Reason, boolean | null>> & { readonly isDecided: boolean }

interface Row {
  readonly tier: string | null
  readonly kev: boolean | null
  readonly inUseState: string
}

const factsOf = ({ tier, kev, inUseState }: Row, isDecided: boolean): Facts => ({
  ...{ kev, isDecided },
  p0: tier === null ? null : tier === 'P0',
  executed: inUseState === 'unknown' ? null : inUseState === 'executed',
})

/** A vulnerability of no workload is decided in none. */
export const clusterFacts = ({ items }: VulnerabilityPage): Facts[] =>
  items.map((row) => factsOf(row, row.workloads > 0 && row.decidedWorkloads === row.workloads))

export const imageFacts = ({ items }: FindingPage): Facts[] => items.map((row) => factsOf(row, row.decided))

/** Undefined where nothing has to be judged. `gaps` say what no finding can tell. */
export function judgeOf<Answer>(
  { failOn }: ListFlags,
  factsOfAnswer: (answer: Answer) => readonly Facts[],
  gaps: readonly string[] = [],
): ((answers: readonly Answer[]) => Judgement) | undefined {
  if (failOn === undefined) return undefined
  const reasons = REASONS.filter((reason) => (failOn as readonly Reason[]).includes(reason))
  return (answers) => judge(reasons, answers.flatMap(factsOfAnswer), gaps)
}

function judge(reasons: readonly Reason[], all: readonly Facts[], gaps: readonly string[]): Judgement {
  const open = all.filter(({ isDecided }) => !isDecided)
  const found = reasons.map((reason) => ({
    reason,
    so: open.filter((facts) => facts[reason]).length,
    unknown: open.filter((facts) => facts[reason] === null).length,
  }))
  const decided = all.length - open.length
  return {
    isSo: found.some(({ so }) => so > 0),
    said: [
      ...found.map(
        ({ reason, so, unknown }) =>
          `--fail-on ${reason}: ${counted(so, 'finding')}${unknown > 0 ? `, not known of ${unknown} more` : ''}`,
      ),
      ...(decided > 0 ? [`${counted(decided, 'decided finding')} not counted`] : []),
      ...gaps,
    ],
  }
}
