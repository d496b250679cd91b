/** A cluster of 43 000 pods: each page asks a few times, for a few bytes, and the broker does not grow. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { JsonAnswer } from '../../wrangler-free-deploy/console/api/answers.ts'
import { onlyFull } from '../support/depth.ts'
import { noBrowser } from './support/browser.ts'
import { seededDatabase } from './support/seeded.ts'
import { type Visits, visits } from './support/visit.ts'

const skip = noBrowser || onlyFull
const MAX_GROWTH_MIB = 150
/** Long tables render the rows in sight: this many is a full one. */
const FULL = 12

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
    const path = `/images/${digest}/vulnerabilities?limit=500`
    const { items } = await site.get<JsonAnswer<'/images/{digest}/vulnerabilities'>>(path)
    findings.push({ digest, count: items.length })
  }
  const [most, next] = findings.sort((one, other) => other.count - one.count)
  assert.ok(most!.count > 300 && findings.length > 190, `${findings.length} images, ${most!.count} findings`)

  const { items } = await site.get<JsonAnswer<'/vulnerabilities'>>('/vulnerabilities?limit=500')
  const widest = [...items].sort((one, other) => other.workloads - one.workloads)[0]!
  return { node, namespace, workload, images: [most!.digest, next!.digest], vulnerability: widest.id }
}

/** The pages, with how many rows each has to show. */
function pagesOf({ node, namespace, workload, images: [image, other], vulnerability }: Largest): [string, number][] {
  const of = (page: string, tabs: Readonly<Record<string, number>>): [string, number][] =>
    Object.entries(tabs).map(([tab, rows]) => [tab === '' ? page : `${page}?tab=${tab}`, rows])
  const [inNamespace, named] = [`namespace=${namespace}`, `workload=${encodeURIComponent(workload)}`]
  return [
    ['', 1],
    ['map', 0],
    [`map?open=${namespace}`, 0],
    [`focus/${workload}`, FULL],
    ['flows', FULL],
    [`flows?${inNamespace}`, FULL],
    [`flows?${named}`, FULL],
    ['search?q=a', FULL],
    ['workloads', FULL],
    [`workloads?${inNamespace}`, FULL],
    ...of(`workload/${workload}`, {
      ...{ '': 1, flows: 1, vulnerabilities: FULL, seccomp: FULL, runtime: FULL, compute: FULL, trust: 1, changes: 1 },
    }),
    ['policy', 0],
    [`policy/${workload}`, 0],
    ['vulnerabilities', FULL],
    [`vulnerability/${vulnerability}`, FULL],
    ['images', FULL],
    ...of(`image/${image}`, { '': FULL, vulnerabilities: FULL, sbom: FULL, signatures: 1, files: FULL }),
    [`image/${image}/diff/${other}`, FULL],
    ['packages?name=openssl', FULL],
    ['packages?name=libprofile', FULL],
    ['nodes', FULL],
    ...of(`node/${node}`, { '': 1, pods: FULL, contention: FULL }),
    [`node/${node}?tab=contention&minutes=60`, FULL],
    ['health', 1],
    ...['images', 'containers', 'nodes', 'workloads'].map((part): [string, number] => [`health?part=${part}`, 0]),
    ['denials', FULL],
    [`denials?${inNamespace}`, FULL],
    ['findings', FULL],
    [`findings?${inNamespace}`, FULL],
  ]
}

describe('43 000 pods', { skip }, () => {
  // In here, so that nothing is seeded where the tests are skipped.
  const site = visits(() => seededDatabase('pods'))

  test('few requests and bytes on every page, full ones, and a broker that stays small', async (t) => {
    const pages = pagesOf(await largestOf(site))
    const before = rssMib(site.broker.pid)
    const faults: string[] = []
    for (const [page, minRows] of pages) {
      const taken = await site.keepsBounds(page, minRows).catch((error: Error) => {
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
