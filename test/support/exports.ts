/** A workload of which everything is known that an export is made from, for tests of exports. */
import assert from 'node:assert/strict'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { containerId, heartbeat } from '../runtime/heartbeats.ts'
import { type startApp, TOKENS } from './app.ts'
import { signature, storeAttestation } from './attestations.ts'
import { container, newDigest } from './images.ts'
import { countEdges, daysAgo, flowOf, podOf, serviceOf } from './policy-cluster.ts'
import { storeContributions } from './seccomp.ts'
import { component, finding, storeFindings, storeSbom } from './supply-chain.ts'

type App = Awaited<ReturnType<typeof startApp>>

let made = 0

export interface Told {
  /** The capture level of its pod. */
  readonly capture?: string
  /** Days since its flows; null for a workload without any. */
  readonly flowsDaysAgo?: number | null
  readonly isSigned?: boolean
  readonly isWatched?: boolean
  /** Paths that its container executed. */
  readonly executed?: readonly string[]
  readonly kind?: string
  readonly name?: string
}

export const SBOM = [
  component('libssl3', {
    ...{ version: '3.0.1', purl: 'pkg:deb/debian/libssl3@3.0.1', type: 'deb', class: 'os-pkgs' },
    file_paths: ['/usr/lib/libssl.so.3'],
  }),
  component('curl', { version: '8.0', type: 'deb', class: 'os-pkgs', file_paths: ['/usr/bin/curl'] }),
  component('left-pad', { version: '1.0', type: 'npm', class: 'lang-pkgs' }),
]
export const FINDINGS = [
  finding('CVE-2099-0001', {
    ...{ package_name: 'libssl3', installed_version: '3.0.1', package_purl: 'pkg:deb/debian/libssl3@3.0.1' },
    ...{ package_type: 'deb', class: 'os-pkgs' },
  }),
  finding('CVE-2099-0002', { package_name: 'curl', installed_version: '8.0', package_type: 'deb', class: 'os-pkgs' }),
  finding('CVE-2099-0003', { package_name: 'left-pad', installed_version: '1.0', package_type: 'npm' }),
]

export const secondsAgo = (secs: number) => new Date(Date.now() - secs * 1_000).toISOString().slice(0, -1)

/** Posts and stores a workload with one pod in a namespace of its own, and runs the jobs. */
export async function tellWorkload(app: App, told: Told = {}) {
  const n = ++made
  const { capture = 'full', flowsDaysAgo = 10, isSigned = true, isWatched = true, executed = [] } = told
  const { kind = 'Deployment', name = 'web' } = told
  const key = { namespace: `export-${n}`, kind, name }
  const podName = `${name}-${n}`.toLowerCase().replace(/[^a-z0-9-]/g, '-')
  const digest = newDigest()
  const ip = `10.7.${n}.1`
  const sends = async (path: string, body: unknown) => {
    const answer = await app.post(path, body, { token: TOKENS.BROKER_TOKEN_INGEST })
    assert.equal(answer.status, 200, answer.text)
  }
  const pod = podOf({
    ...{ namespace: key.namespace, name: podName, ip, workload: `${kind}/${name}`, labels: { app: 'web' } },
    ...{ selector: { app: 'web' }, ports: [{ name: 'http', containerPort: 8080 }] },
    more: { containers: [container('main', digest)], capture_level: capture },
  })
  await sends('/pod/spec', pod)
  await sends(
    '/svc/spec',
    serviceOf(key.namespace, 'web', `10.97.${n}.1`, { selector: { app: 'web' }, ports: [{ port: 80 }] }),
  )
  if (flowsDaysAgo !== null)
    await sends('/pod/traffic/batch', [
      flowOf(pod, 'EGRESS', '93.184.216.34', '443', { time_stamp: daysAgo(flowsDaysAgo) }),
    ])
  const owner = { pod_name: podName, pod_namespace: key.namespace, workload_kind: kind, workload_name: name }
  await storeContributions(app.sql, [{ ...owner, capture_level: capture }], new Date().toISOString())
  await app.sql`
    insert into workload_syscalls
    values (${key.namespace}, ${kind}, ${name}, 'read,write', '{x86_64}', '0123456789abcdef', 2, now())`
  if (isSigned) await storeAttestation(app, digest, { signatures: [signature()] })
  await storeSbom(app, digest, 'operator-scanner', SBOM, { sbom_trust: 'scanned' })
  await storeFindings(app, digest, 'operator-scanner', FINDINGS)
  const of = { ...owner, container_name: 'main', image_digest: digest }
  if (isWatched)
    await sends('/runtime/coverage', [
      heartbeat({ ...of, container_id: containerId(), tracking_since: secondsAgo(10 * 86_400) }),
    ])
  if (executed.length > 0)
    await sends(
      '/runtime/executables',
      executed.map((path) => ({
        ...{ ...of, kind: 'exec', path, source: 'ebpf', origin: 'image' },
        ...{ first_seen: secondsAgo(7_200), last_seen: secondsAgo(600) },
      })),
    )
  await countEdges(app)
  if (isWatched) await refresh(app)
  const path = `/workloads/${[key.namespace, kind, name].map(encodeURIComponent).join('/')}/export`
  return { key, digest, podName, pod, path }
}

/** Judges the use of packages. */
export async function refresh(app: App): Promise<void> {
  const context = { config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal }
  assert.equal((await supplyChainRefresh.run(context)).outcome, 'done')
}
