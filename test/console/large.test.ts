/** A cluster of 43 000 pods: pages stay within their bounds, and the memory of the broker does not grow. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { onlyFull } from '../support/depth.ts'
import { noBrowser } from './support/browser.ts'
import { newMinutes } from './support/seed/tenants.ts'
import { seededDatabase } from './support/seeded.ts'
import { type Visits, visits } from './support/visit.ts'

const skip = noBrowser || onlyFull
const MAX_GROWTH_MIB = 150
/** Long tables render the rows in sight: this many is a full one. */
const FULL = 12
const MINUTES = 4

/** Resident memory of a process, on Linux. */
const rssMib = (pid: number) => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

/** The name that most of them have. */
function mostOf(names: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return [...counts].sort((one, other) => other[1] - one[1])[0]![0]
}

interface Largest {
  readonly node: string
  readonly namespace: string
  /** Namespace, kind and name. */
  readonly workload: string
  /** With most findings, and another one. */
  readonly images: readonly [string, string]
  readonly vulnerability: string
}

/** The names of which there is most, as the broker's answers say. */
async function largestOf(site: Visits): Promise<Largest> {
  const { nodes } = await site.get<JsonAnswer<'/node/status'>>('/node/status')
  const { node, alivePods } = [...nodes].sort((one, other) => other.alivePods - one.alivePods)[0]!
  assert.ok(alivePods > 800, `${node} has ${alivePods} pods`)
  const pods = await site.get<JsonAnswer<'/pod/list/{node}'>>(`/pod/list/${node}`)
  const namespace = mostOf(pods.map((pod) => pod.pod_namespace!))
  const own = pods.filter((pod) => pod.pod_namespace === namespace && pod.workload_name !== null)
  const workload = mostOf(own.map((pod) => `${namespace}/${pod.workload_kind}/${pod.workload_name}`))
  const { containers } = await site.get<JsonAnswer<'/compute/latest'>>(`/compute/latest?namespace=${namespace}`)
  assert.ok(containers.length > 2_500, `${namespace} has ${containers.length} samples`)

  const digests = (await site.get<JsonAnswer<'/images'>>('/images?limit=500')).items.map(({ digest }) => digest)
  const findings: { digest: string; count: number }[] = []
  for (const digest of digests) {
    const path = `/images/${digest}/vulnerabilities?limit=1`
    const { reports } = await site.get<JsonAnswer<'/images/{digest}/vulnerabilities'>>(path)
    findings.push({ digest, count: Math.max(0, ...reports.map(({ itemCount }) => itemCount)) })
  }
  const [most, next] = findings.sort((one, other) => other.count - one.count)
  assert.ok(most!.count > 600 && findings.length > 190, `${findings.length} images, ${most!.count} findings`)

  const { items } = await site.get<JsonAnswer<'/vulnerabilities'>>('/vulnerabilities?limit=500')
  const widest = [...items].sort((one, other) => other.workloads - one.workloads)[0]!
  return { node, namespace, workload, images: [most!.digest, next!.digest], vulnerability: widest.id }
}

/** A page, how many rows it has to show, and what they are where it has no table. */
type Bound = readonly [page: string, rows: number, selector?: string]

function boundsOf({ node, namespace, workload, images: [image, other], vulnerability }: Largest): Bound[] {
  const of = (page: string, tabs: Readonly<Record<string, number>>): Bound[] =>
    Object.entries(tabs).map(([tab, rows]) => [tab === '' ? page : `${page}?tab=${tab}`, rows])
  const [inNamespace, named] = [`namespace=${namespace}`, `workload=${encodeURIComponent(workload)}`]
  return [
    ['', FULL, 'main .looks li'],
    ['map', FULL],
    [`map?open=${namespace}`, FULL],
    [`focus/${workload}`, FULL, 'main li'],
    ['flows', FULL],
    [`flows?${inNamespace}`, FULL],
    [`flows?${named}`, FULL],
    ['search?q=ac', FULL, 'main li'],
    ['workloads', FULL],
    [`workloads?${inNamespace}`, FULL],
    ...of(`workload/${workload}`, {
      ...{ '': 1, flows: FULL, vulnerabilities: FULL, seccomp: FULL, runtime: FULL, compute: FULL, trust: 1 },
      changes: 1,
    }),
    ['policy', 0],
    [`policy/${workload}`, 1, 'main textarea'],
    ['vulnerabilities', FULL],
    [`vulnerability/${vulnerability}`, FULL],
    ['images', FULL],
    // The image of a tenant runs in eight workloads.
    ...of(`image/${image}`, { '': 8, vulnerabilities: FULL, sbom: FULL, files: FULL }),
    [`image/${image}?tab=signatures`, 2, 'main article'],
    [`image/${image}/diff/${other}`, FULL],
    ['packages?name=openssl', FULL],
    ['packages?name=libprofile', FULL],
    ['nodes', FULL],
    ...of(`node/${node}`, { '': FULL, pods: FULL, contention: FULL }),
    [`node/${node}?tab=contention&minutes=60`, FULL],
    ['health', FULL],
    // Each image has a report.
    ['health?part=images', 0],
    ['health?part=containers', FULL],
    ['health?part=nodes', 0],
    ['health?part=workloads', FULL],
    ['denials', FULL],
    [`denials?${inNamespace}`, FULL],
    ['findings', FULL],
    [`findings?${inNamespace}`, FULL],
  ]
}

/** Seeded minutes are older than the time that findings are of. */
async function postNewMinutes(site: Visits): Promise<void> {
  const { nodes } = await site.get<JsonAnswer<'/node/status'>>('/node/status')
  for (const body of newMinutes(nodes.length, MINUTES)) {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const answer = await fetch(`${site.broker.url}/pod/compute/history/batch`, init)
    assert.ok(answer.ok, await answer.text())
  }
}

describe('43 000 pods', { skip }, () => {
  // Inside `describe`, so that nothing is seeded if the tests are skipped.
  const site = visits(() => seededDatabase('pods'))

  test('few requests and bytes on every page, full ones, and a broker that stays small', async (t) => {
    const largest = await largestOf(site)
    await postNewMinutes(site)
    const pages = boundsOf(largest)
    const before = rssMib(site.broker.pid)
    const faults: string[] = []
    for (const [page, minRows, selector] of pages) {
      const taken = await site.keepsBounds(page, minRows, selector).catch((error: Error) => {
        faults.push(error.message)
      })
      if (!taken) continue
      const { requests, bytes, firstContentMs, rows } = taken
      const size = `${requests} requests, ${Math.round(bytes / 1_000)} kB, ${rows} rows`
      t.diagnostic(`${page || 'start'}: ${size}, content after ${firstContentMs} ms`)
    }
    assert.deepEqual(faults, [])
    const grown = rssMib(site.broker.pid) - before
    t.diagnostic(
      `the broker: ${Math.round(before)} MiB before, ${Math.round(grown)} MiB more after ${pages.length} pages`,
    )
    assert.ok(grown < MAX_GROWTH_MIB, `${grown} MiB`)
  })
})
