/** A cluster of 43 000 pods: pages stay within their bounds, and the memory of the broker does not grow. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { onlyFull } from '../support/depth.ts'
import { noBrowser } from './support/browser.ts'
import { seededDatabase } from './support/seeded.ts'
import { visits } from './support/visit.ts'

const skip = noBrowser || onlyFull
const MAX_GROWTH_MIB = 150

/** Resident memory of a process, on Linux. */
const rssMib = (pid: number) => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

describe('43 000 pods', { skip }, () => {
  // Inside `describe`, so that nothing is seeded if the tests are skipped.
  const site = visits(() => seededDatabase('pods'))

  test('few requests and bytes on every page, and a broker that stays small', async (t) => {
    const { values } = await site.get<{ values: readonly string[] }>('/flows/hints?field=workload')
    const { nodes } = await site.get<{ nodes: readonly { node: string; alivePods: number }[] }>('/node/status')
    const images = await site.get<{ items: readonly { digest: string }[] }>('/images?limit=1')
    const workload = values[0]!
    const [namespace] = workload.split('/')
    const busiest = [...nodes].sort((one, other) => other.alivePods - one.alivePods)[0]!
    const pages = [
      ...['', 'map', `map?open=${namespace}`, `focus/${workload}`, 'flows', 'search?q=a', 'workloads'],
      ...['', 'flows', 'vulnerabilities', 'seccomp', 'runtime', 'compute', 'trust', 'changes'].map(
        (tab) => `workload/${workload}?tab=${tab}`,
      ),
      ...['policy', `policy/${workload}`, 'vulnerabilities', 'images', 'packages?name=openssl', 'nodes', 'health'],
      ...[`node/${busiest.node}`, `node/${busiest.node}?tab=pods`, 'denials', 'findings'],
      ...(images.items[0] === undefined ? [] : [`image/${images.items[0].digest}`]),
    ]
    const before = rssMib(site.broker.pid)
    for (const page of pages) {
      const { requests, bytes, firstContentMs } = await site.keepsBounds(page)
      t.diagnostic(
        `${page || 'start'}: ${requests} requests, ${Math.round(bytes / 1_000)} kB, content after ${firstContentMs} ms`,
      )
    }
    const grown = rssMib(site.broker.pid) - before
    t.diagnostic(
      `the broker: ${Math.round(before)} MiB before, ${Math.round(grown)} MiB more after ${pages.length} pages`,
    )
    assert.ok(grown < MAX_GROWTH_MIB, `${grown} MiB`)
  })
})
