import { supplyChainRefresh } from '../../../jobs/supply-chain-refresh.ts'
import { component, finding, storeFindings, storeSbom } from '../../support/supply-chain.ts'
import type { SeededApp } from '../cluster.ts'
import { WEB } from './workloads.ts'

/** What scanners know of the images that run. */
export async function seedSupplyChain(app: SeededApp): Promise<void> {
  await storeFindings(app, WEB, 'operator-scanner', [finding('CVE-2026-0001')])
  await storeSbom(app, WEB, 'registry', [component('openssl', { version: '3.0.1' })])
  await supplyChainRefresh.run({
    ...{ config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal },
  })
}
