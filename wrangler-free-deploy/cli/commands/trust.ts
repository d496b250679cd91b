import { type ListFlags, listing } from '../list/listing.ts'
import type { Colour } from '../output/cell.ts'
import { counted } from '../output/lines.ts'
import type { Judgement } from '../output/show.ts'

interface Result {
  readonly policy: string
  readonly namespace: string
  readonly workload: string
  readonly container: string
  readonly digest: string
  readonly image: string
  readonly verdict: string
  readonly reason?: string
}

interface ImageTrust {
  readonly available: boolean
  readonly reason?: string
  readonly evaluatedAt: string | null
  readonly total: number
  readonly wouldDeny: number
  readonly unknown: number
  readonly trusted: number
  readonly results: readonly Result[]
  readonly truncated: boolean
}

const FAIL_ON = ['wouldDeny', 'unknown'] as const
const COLOURS: Readonly<Record<string, Colour>> = { Trusted: 'green', WouldDeny: 'red' }

export const trust = listing<ImageTrust, Result>({
  route: '/image-trust',
  flags: {
    failOn: {
      ...({ kind: 'enum', values: FAIL_ON, optional: true, variadic: ',' } as const),
      brief: 'Exit code 1 if a matching result is so; may be repeated.',
    },
  },
  rowsOf: ({ results }) => results,
  // There are no further pages; the rows are bounded by --limit all the same.
  nextOf: () => null,
  columns: [
    { header: 'NAMESPACE', of: ({ namespace }) => namespace },
    { header: 'WORKLOAD', of: ({ workload }) => workload },
    { header: 'CONTAINER', of: ({ container }) => container },
    { header: 'VERDICT', of: ({ verdict }) => verdict, colourOf: ({ verdict }) => COLOURS[verdict] ?? 'yellow' },
    { header: 'REASON', of: ({ reason }) => reason },
    { header: 'POLICY', of: ({ policy }) => policy },
    { header: 'IMAGE', of: ({ image }) => image },
    { header: 'DIGEST', of: ({ digest }) => digest, isWide: true },
  ],
  nameOf: ({ namespace, workload }) => `${namespace}/${workload}`,
  said: saidOf,
  judgeOf: ({ failOn }: ListFlags) => {
    if (failOn === undefined) return undefined
    return (answers) => judge(failOn as readonly (typeof FAIL_ON)[number][], answers)
  },
  brief: 'List how image trust policies judge the running containers',
  description: [
    'With --fail-on the exit code is 1 if any matching result is so, whatever --limit says.',
    'Where no judgement is available, nothing is known: --fail-on unknown is then 1, --fail-on wouldDeny is not.',
  ],
})

function saidOf({
  available,
  reason,
  evaluatedAt,
  total,
  wouldDeny,
  unknown,
  trusted,
  results,
  truncated,
}: ImageTrust) {
  if (!available) return [`image trust is not known: ${reason ?? 'no reason was given'}`]
  if (evaluatedAt === null) return ['image trust is not known: the evaluator has not finished a pass']
  return [
    `${counted(total, 'result')}: ${wouldDeny} would be denied, ${unknown} unknown, ${trusted} trusted`,
    ...(truncated ? [`${results.length} of ${total} results are listed`] : []),
  ]
}

function judge(failOn: readonly (typeof FAIL_ON)[number][], answers: readonly ImageTrust[]): Judgement {
  const isSo = answers.some(
    ({ available, evaluatedAt, wouldDeny, unknown }) =>
      (failOn.includes('wouldDeny') && wouldDeny > 0) ||
      (failOn.includes('unknown') && (unknown > 0 || !available || evaluatedAt === null)),
  )
  return { isSo, said: [] }
}
