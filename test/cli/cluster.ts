/** A broker that knows a small cluster with something of every capability, for the golden tests of the command line. */
import { after } from 'node:test'
import { profileSnapshots } from '../../jobs/profile-snapshots.ts'
import { close, listen } from '../../lib/http/server/listen.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { startEvaluator } from './seed/evaluator.ts'
import { seedFlows } from './seed/flows.ts'
import { seedSupplyChain } from './seed/supply-chain.ts'
import { seedWorkloads } from './seed/workloads.ts'

export type SeededApp = Awaited<ReturnType<typeof startApp>>

export async function startCluster() {
  const evaluator = await startEvaluator()
  const app = await startApp({
    ...{ POD_TRAFFIC_RETENTION_DAYS: '0', SECCOMP_PROFILES_CACHE_TTL_SECS: '0', EVALUATOR_URL: evaluator.url },
    ...TOKENS,
  })
  await seedFlows(app)
  await seedWorkloads(app)
  await seedSupplyChain(app)
  await profileSnapshots.run({
    ...{ config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal },
  })
  const { server, address } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
  after(() => close(server, 1_000))
  return { ...app, url: `http://127.0.0.1:${address.port}` }
}
