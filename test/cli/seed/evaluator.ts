/** The evaluator of image trust policies, with its judgement of the shop. */
import { startStub } from '../../support/stub.ts'
import { API, WEB } from './workloads.ts'

const judged = (name: string, digest: string, verdict: string, reason?: string) => ({
  policy: 'shop/signed',
  namespace: 'shop',
  workload: `Deployment/${name}`,
  container: name,
  digest,
  image: `registry.test/shop/${name}:v1`,
  verdict,
  reason,
})

/** Its results; tests may add some, or take all away for an evaluator that is down. */
export const JUDGED: ReturnType<typeof judged>[] = [
  judged('web', WEB, 'Trusted'),
  judged('api', API, 'WouldDeny', 'unsigned'),
  { ...judged('api', API, 'Unknown', 'not-checked'), policy: 'cluster/provenance' },
]

export const startEvaluator = () =>
  startStub(({ query }) => {
    if (JUDGED.length === 0) return { status: 500 }
    const results = JUDGED.filter(
      ({ namespace, verdict }) =>
        (!query.namespace || query.namespace === namespace) && (!query.verdict || query.verdict === verdict),
    )
    return { json: { evaluatedAt: '2026-01-31T09:00:00Z', results } }
  })
