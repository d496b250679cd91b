import { z } from 'zod'
import { BadAnswer } from './unavailable.ts'

/** Verdicts that a query may ask for. The evaluator may say others: they are neither trusted nor denied, and count as unknown. */
export const VERDICTS = ['Trusted', 'WouldDeny', 'Unknown'] as const
export type Verdict = (typeof VERDICTS)[number]

/** What one policy makes of one running container. */
export const TrustResult = z
  .strictObject({
    policy: z.string().describe('`namespace/name`, or `cluster/name` of one for the whole cluster.'),
    namespace: z.string(),
    workload: z.string().describe('`Kind/name`.'),
    container: z.string(),
    digest: z.string(),
    image: z.string(),
    verdict: z.string().describe(`${VERDICTS.join(', ')}; any other word counts as Unknown.`),
    reason: z.string().optional().describe('Absent when there is none.'),
  })
  .meta({ id: 'TrustResult' })
export type TrustResult = z.output<typeof TrustResult>

/** An element of the list of the evaluator. Further keys are dropped. @throws BadAnswer for what is none */
export function readResult(element: unknown): TrustResult {
  const sent = (element ?? {}) as Record<keyof TrustResult, unknown>
  const reason = sent.reason ?? ''
  const result = {
    policy: textOf(sent, 'policy'),
    namespace: textOf(sent, 'namespace'),
    workload: textOf(sent, 'workload'),
    container: textOf(sent, 'container'),
    digest: textOf(sent, 'digest'),
    image: textOf(sent, 'image'),
    verdict: textOf(sent, 'verdict'),
  }
  if (typeof reason !== 'string') throw new BadAnswer('the reason of a result is no text')
  return reason === '' ? result : { ...result, reason }
}

function textOf(sent: Record<string, unknown>, key: keyof TrustResult): string {
  const value = sent[key]
  if (typeof value !== 'string') throw new BadAnswer(`the ${key} of a result is no text`)
  return value
}

/** The verdict as it counts. */
export const countedAs = ({ verdict }: TrustResult): Verdict =>
  verdict === 'WouldDeny' || verdict === 'Trusted' ? verdict : 'Unknown'

const RANK: Readonly<Record<Verdict, number>> = { WouldDeny: 0, Unknown: 1, Trusted: 2 }

/** The order of the answer: the worst first, then by namespace, workload, container and policy, as UTF-16 text compares. */
export function compareResults(a: TrustResult, b: TrustResult): number {
  return (
    RANK[countedAs(a)] - RANK[countedAs(b)] ||
    compareText(a.namespace, b.namespace) ||
    compareText(a.workload, b.workload) ||
    compareText(a.container, b.container) ||
    compareText(a.policy, b.policy)
  )
}

export const compareText = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)

/** What a query asks for; null is no filter. */
export interface TrustFilter {
  readonly namespace: string | null
  readonly verdict: Verdict | null
  /** In any case of letters. */
  readonly workloadKind: string | null
  readonly workloadName: string | null
}

/**
 * Whether a result is asked for. Of namespace and verdict the evaluator knows too, but an answer about others must not be shown as if it were
 * about these. A workload without a slash is of no kind and has no name.
 */
export function matcher({
  namespace,
  verdict,
  workloadKind,
  workloadName,
}: TrustFilter): (result: TrustResult) => boolean {
  const kind = workloadKind?.toLowerCase() ?? null
  return (result) => {
    if (namespace !== null && result.namespace !== namespace) return false
    if (verdict !== null && countedAs(result) !== verdict) return false
    if (kind === null && workloadName === null) return true
    const slash = result.workload.indexOf('/')
    if (slash < 0) return false
    if (workloadName !== null && result.workload.slice(slash + 1) !== workloadName) return false
    return kind === null || result.workload.slice(0, slash).toLowerCase() === kind
  }
}
