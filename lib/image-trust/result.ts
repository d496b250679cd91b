import { z } from 'zod'
import { BadAnswer } from './unavailable.ts'

/** TrustVerdicts that a query may ask for. The evaluator may send other words, which count as Unknown. */
export const VERDICTS = ['Trusted', 'WouldDeny', 'Unknown'] as const
type TrustVerdict = (typeof VERDICTS)[number]

/** The judgement of one policy on one running container. */
export const TrustResult = z
  .strictObject({
    policy: z.string().describe('`namespace/name`, or `cluster/name` for a policy of the whole cluster.'),
    namespace: z.string(),
    workload: z.string().describe('`Kind/name`.'),
    container: z.string(),
    digest: z.string(),
    image: z.string(),
    verdict: z.string().describe(`${VERDICTS.join(', ')}; any other word counts as Unknown.`),
    reason: z.string().optional().describe('Absent without one.'),
  })
  .meta({ id: 'TrustResult' })
export type TrustResult = z.output<typeof TrustResult>

/** Reads an element of the evaluator's list. Further keys are dropped. @throws BadAnswer if it is no result */
export function readResult(element: unknown): TrustResult {
  const sent = (element ?? {}) as TrustResult
  const reason = sent.reason ?? ''
  for (const key of TEXTS) if (typeof sent[key] !== 'string') throw new BadAnswer(`the ${key} of a result is no text`)
  if (typeof reason !== 'string') throw new BadAnswer('the reason of a result is no text')
  const { policy, namespace, workload, container, digest, image, verdict } = sent
  const result = { policy, namespace, workload, container, digest, image, verdict }
  return reason === '' ? result : { ...result, reason }
}

const TEXTS = ['policy', 'namespace', 'workload', 'container', 'digest', 'image', 'verdict'] as const

/** The verdict that a result counts as. */
export const effectiveVerdict = ({ verdict }: TrustResult): TrustVerdict =>
  verdict === 'WouldDeny' || verdict === 'Trusted' ? verdict : 'Unknown'

const RANK: Readonly<Record<TrustVerdict, number>> = { WouldDeny: 0, Unknown: 1, Trusted: 2 }

/** The order of the answer: the worst first, then by namespace, workload, container and policy, compared as UTF-16. */
export function compareResults(a: TrustResult, b: TrustResult): number {
  return (
    RANK[effectiveVerdict(a)] - RANK[effectiveVerdict(b)] ||
    compareText(a.namespace, b.namespace) ||
    compareText(a.workload, b.workload) ||
    compareText(a.container, b.container) ||
    compareText(a.policy, b.policy)
  )
}

const compareText = (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1)

/** The filters of a query; null is no filter. */
export interface TrustFilter {
  readonly namespace: string | null
  readonly verdict: TrustVerdict | null
  /** Compared without case. */
  readonly workloadKind: string | null
  readonly workloadName: string | null
}

/**
 * Returns a predicate for the filters. The evaluator also filters by namespace and verdict, but the broker checks
 * again, so that an answer about others is not shown for these. A workload without a slash has no kind and no name.
 */
export function matcher(filter: TrustFilter): (result: TrustResult) => boolean {
  const { namespace, verdict, workloadName } = filter
  const kind = filter.workloadKind?.toLowerCase() ?? null
  return (result) => {
    if (namespace !== null && result.namespace !== namespace) return false
    if (verdict !== null && effectiveVerdict(result) !== verdict) return false
    if (kind === null && workloadName === null) return true
    const slash = result.workload.indexOf('/')
    if (slash < 0) return false
    if (workloadName !== null && result.workload.slice(slash + 1) !== workloadName) return false
    return kind === null || result.workload.slice(0, slash).toLowerCase() === kind
  }
}
