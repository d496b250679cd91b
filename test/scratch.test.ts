import test from 'node:test'
import { supplyChainRefresh } from '../jobs/supply-chain-refresh.ts'
import { startApp } from './support/app.ts'
import { container, newDigest, replica } from './support/images.ts'
import { component, finding, storeFindings, storeSbom } from './support/supply-chain.ts'
const app = await startApp()
test('x', async () => {
  const d = newDigest()
  console.log((await app.post('/pod/spec', replica('prod', [container('app', d)]))).status)
  await storeSbom(app, d, 'operator-scanner', [component('org.apache.logging.log4j:log4j-core', { version: '2.14.1', type: 'jar', purl: 'pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1' }), component('openssl')])
  await storeFindings(app, d, 'operator-scanner', [finding('CVE-2021-44228', { package_name: 'log4j', aliases: ['GHSA-jfh8-c2jp-5v3q'] })])
  for (const round of [0, 1]) {
    for (const q of ['log4j', 'LOG4J-core', 'pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1?type=jar', 'pkg:maven/org', 'ghsa-jfh8-c2jp-5v3q', d.slice(0, 16), 'team/app:v1', 'deployment/web', 'prod/web', 'prod', '10.0.0.1', '%', 'a', 'web-0']) {
      const answer = await app.get(`/search?q=${encodeURIComponent(q)}`)
      console.log(q, answer.status, answer.text)
    }
    for (const q of ['name=log4j', 'name=log4j-core', 'purl=pkg:maven/org.apache.logging.log4j/log4j-core', 'name=nix', '']) {
      const answer = await app.get(`/components?${q}`)
      console.log(q, answer.status, answer.text)
    }
    const out = await supplyChainRefresh.run({ ...app.deps, signal: new AbortController().signal } as never)
    console.log(out, await app.sql`select * from package_entry`, await app.sql`select packages, kind from payload_packages`)
  }
})
