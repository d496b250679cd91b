import assert from 'node:assert/strict'
import { supplyChainRefresh } from '../../../jobs/supply-chain-refresh.ts'
import { hoursAgo, storeContainers, storeFiles, storeInstances } from '../../changes/rows.ts'
import { TOKENS } from '../../support/app.ts'
import { resultOf, signature, statement } from '../../support/attestations.ts'
import { container, digestOf, replica } from '../../support/images.ts'
import { component, finding, storeFindings, storeSbom } from '../../support/supply-chain.ts'
import type { SeededApp } from '../cluster.ts'
import { API, WEB } from './workloads.ts'

/** The image that Deployment web ran until ten days ago. */
export const OLD_WEB = digestOf('the web of the shop before')
/** An image that runs and that no scanner has seen. */
export const DB = digestOf('db of the shop')

const HOURS_A_DAY = 24

/** Findings, SBOMs, signatures and decisions of the images that run. */
export async function seedSupplyChain(app: SeededApp): Promise<void> {
  await runImages(app)
  await storeReports(app)
  await storeSignatures(app)
  await refreshSupplyChain(app)
  await decide(app, 'CVE-2026-0004', { decision: 'affected', by: 'team-web', why: 'to be looked at' })
  await decide(app, 'CVE-2026-0004', {
    ...{ decision: 'not_affected', justification: 'vulnerable_code_not_present', by: 'team-web', why: 'no TLS here' },
    until: '2999-12-31',
  })
  await decide(app, 'CVE-2026-0004', {
    ...{ scope: { type: 'image', digest: WEB }, decision: 'accepted', by: 'team-web', why: 'until the next release' },
  })
}

async function runImages(app: SeededApp): Promise<void> {
  const db = container('db', DB, { image: 'registry.test/shop/db:v1', repository: 'registry.test/shop/db', tag: 'v1' })
  const names = { pod_name: 'db-0', pod_ip: '10.1.0.3', workload_kind: 'StatefulSet', workload_name: 'db' }
  const answer = await app.post('/pod/spec', replica('shop', [db], names), { token: TOKENS.BROKER_TOKEN_INGEST })
  assert.equal(answer.status, 200, answer.text)
  const [first, last] = [hoursAgo(30 * HOURS_A_DAY), hoursAgo(10 * HOURS_A_DAY)]
  await storeContainers(app.sql, [{ container: 'web', digest: OLD_WEB, first, last, state: 'terminated' }])
  await app.sql`update image set repository = 'registry.test/shop/web', tags = '{v0}', first_seen = ${first}::timestamp,
                                 last_seen = ${last}::timestamp where digest = ${OLD_WEB}`
  const of = { container: 'web', digest: WEB }
  await storeInstances(app.sql, [{ ...of, pod: 'web-1' }])
  await storeFiles(app.sql, [
    { ...of, path: '/usr/bin/openssl', first: hoursAgo(2) },
    { ...of, path: '/tmp/run.sh', origin: 'writableLayer', first: hoursAgo(1) },
  ])
}

async function storeReports(app: SeededApp): Promise<void> {
  const fixed = { fixed_versions: ['3.0.2'], class: 'os-pkgs' }
  const [critical, medium, low] = [0, 2, 3]
  const zlib = { package_name: 'zlib', installed_version: '1.2.11' }
  const exploited = finding('CVE-2026-0001', { ...fixed, kev: true, epss: 0.943, title: 'A record is read too far' })
  await storeFindings(app, WEB, 'operator-scanner', [
    exploited,
    finding('CVE-2026-0002', { ...zlib, severity: medium, kev: false, epss: 0.0004 }),
    finding('CVE-2026-0003', { ...zlib, severity: critical, aliases: ['GHSA-aaaa-bbbb-cccc'] }),
    finding('CVE-2026-0004', { severity: low }),
  ])
  await storeFindings(app, OLD_WEB, 'operator-scanner', [
    finding('CVE-2026-0002', { ...zlib, severity: low }),
    finding('CVE-2025-0009', { severity: critical, installed_version: '3.0.0', fixed_versions: ['3.0.1'] }),
  ])
  await storeFindings(app, API, 'registry', [exploited])
  const openssl = (version: string) => {
    const [purl, file_paths] = [`pkg:deb/debian/openssl@${version}`, ['usr/bin/openssl']]
    return component('openssl', { version, purl, type: 'deb', class: 'os-pkgs', licenses: ['Apache-2.0'], file_paths })
  }
  const others = [
    component('zlib', {
      version: '1.2.11',
      purl: 'pkg:deb/debian/zlib@1.2.11',
      type: 'deb',
      licenses: ['Zlib', 'MIT'],
    }),
    component('left-pad', { version: '1.3.0', purl: 'pkg:npm/left-pad@1.3.0', type: 'npm' }),
  ]
  await storeSbom(app, WEB, 'registry', [openssl('3.0.1')], { sbom_trust: 'verified' })
  await storeSbom(app, WEB, 'operator-scanner', [openssl('3.0.1'), ...others])
  await storeSbom(app, OLD_WEB, 'operator-scanner', [
    openssl('3.0.0'),
    others[0]!,
    component('curl', { version: '8.5.0' }),
  ])
}

async function storeSignatures({ sql }: SeededApp): Promise<void> {
  const results = [
    resultOf(WEB, { repository: 'registry.test/shop/web', signatures: [signature()], attestations: [statement()] }),
    resultOf(OLD_WEB, { repository: 'registry.test/shop/web' }),
    resultOf(API, { repository: 'registry.test/shop/api' }),
  ]
  for (const result of results) await sql`select store_attestation(${JSON.stringify(result)}::text::json)`
}

export const refreshSupplyChain = (app: SeededApp) =>
  supplyChainRefresh.run({
    ...{ config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal },
  })

async function decide(app: SeededApp, id: string, fields: Record<string, unknown>): Promise<void> {
  const body = { scope: { type: 'all' }, ...fields }
  const answer = await app.request('PUT', `/vulnerabilities/${id}/decision`, {
    ...{ body, token: TOKENS.BROKER_TOKEN_SUPPLYCHAIN },
  })
  assert.equal(answer.status, 200, answer.text)
}
