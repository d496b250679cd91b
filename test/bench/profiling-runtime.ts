/** The runtime inventory: what its routes take at millions of rows. */
import type postgres from 'postgres'
import { IMAGES, largePath, seedRuntime, workloadPath, workloadsOf } from './profiling-runtime-dataset.ts'

export interface Bench {
  /** Sends one request after another, `body` as JSON, and prints what they took. */
  ask(
    what: string,
    hold: string,
    request: (i: number) => { path: string; body?: unknown },
    count: number,
  ): Promise<void>
  print(line: string): void
}

const READS = 200
const POSTS = 20
const BATCH = 5_000

const HOLD_READ = 'p99 < 40 ms'

const digest = `sha256:${'e'.repeat(64)}`
const entry = (i: number, path: string) => ({
  pod_namespace: 'posted',
  pod_name: `pod-${i}`,
  workload_kind: 'Deployment',
  workload_name: `posted-${i}`,
  container_name: 'app',
  image_digest: digest,
  kind: 'lib',
  path,
  path_complete: true,
  source: 'ebpf',
  origin: 'image',
  first_seen: '2026-01-01T00:00:00',
  last_seen: '2026-01-01T00:00:00',
})
const batch = (i: number) =>
  Array.from({ length: BATCH }, (_, n) => entry(i, `/usr/lib/x86_64-linux-gnu/libposted-${n}.so.${n % 10}`))

/** Seeds `scale` x 2 million rows and measures. */
export async function measureRuntime(sql: postgres.Sql, scale: number, { ask, print }: Bench): Promise<void> {
  const began = performance.now()
  const rows = await seedRuntime(sql, scale)
  const workloads = workloadsOf(scale)
  print(`  ${rows} files in ${workloads} workloads, seeded in ${((performance.now() - began) / 1_000).toFixed(0)} s`)
  const read = (what: string, path: (i: number) => string, hold = HOLD_READ) =>
    ask(`runtime: ${what}`, hold, (i) => ({ path: path(i) }), READS)
  const any = (i: number) => workloadPath((i * 17) % workloads)
  await read('a workload, limit 1000', (i) => `${any(i)}?limit=1000`)
  await read('a workload, unshipped files', (i) => `${any(i)}?origin=unshipped`, '')
  const image = (digest: string, query = '') => `/images/${digest}/runtime${query}`
  const after = (part: number) => `?after=lib:${encodeURIComponent(largePath(part))}`
  await read('an image, first page', () => image(IMAGES.large))
  await read('an image, a page in the middle', () => image(IMAGES.large, after(0.45)))
  await read('an image, last page', () => image(IMAGES.large, after(0.93)))
  await read('an image of 100 workloads, a page', () => image(IMAGES.shared))
  await read('an image of 500 workloads, a page', () => image(IMAGES.sidecar))
  const post = (what: string, hold: string, at: (i: number) => number) =>
    ask(
      `runtime: POST of ${BATCH}, ${what}`,
      hold,
      (i) => ({ path: '/runtime/executables', body: batch(at(i)) }),
      POSTS,
    )
  await post('all new', 'p99 < 600 ms', (i) => i)
  await post('all known', 'p99 < 150 ms', (i) => i)
}
