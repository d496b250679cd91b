/**
 * The daily request to the version service for the available releases (docs/contract.md#jobs): one GET with the
 * parameters below and nothing else. It has no name, address or label of the cluster.
 */
import http from 'node:http'
import https from 'node:https'
import { readReply } from '../net/reply.ts'
import { VERSION } from '../version.ts'

const TIMEOUT_MS = 10_000
const MAX_REPLY_BYTES = 64 * 1024
const MAX_COMPONENTS = 64

/** The parameters; every value is coarse. */
export interface CheckIn {
  /** A random UUID of this installation. */
  install: string
  chart: string
  k8s: string
  /** Nodes that live pods run on. */
  nodes: number
  provider: string
  distro: string
  cni: string
  ip_family: string
  node_os: string
  pods_bucket: string
  features: string
}

/** Versions by component. */
export type Releases = Record<string, string>

/** The URL of a check-in: `/v1/check` is added to an endpoint without a path; one with a path is used as it is. */
export function checkInUrl(endpoint: string, sent: CheckIn): URL {
  const url = new URL(endpoint)
  if (url.pathname === '/') url.pathname = '/v1/check'
  const { install, chart, k8s, nodes, ...added } = sent
  const parameters = { install, broker: VERSION, chart, k8s, nodes, arch: architecture(process.arch), ...added }
  for (const [key, value] of Object.entries(parameters)) url.searchParams.append(key, String(value))
  return url
}

/** Sends the request. Rejects on transport errors, timeouts, any status but 2xx, and invalid answers. */
export async function askReleases(url: URL, signal: AbortSignal): Promise<Releases> {
  const { request } = url.protocol === 'https:' ? https : http
  const outgoing = request(url, {
    agent: false,
    headers: { 'user-agent': `kguardian-broker/${VERSION}` },
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  })
  const reply = readReply(outgoing, MAX_REPLY_BYTES)
  outgoing.end()
  const { status, text } = await reply
  if (status < 200 || status > 299) throw new Error(`status ${status}`)
  return readReleases(text)
}

/** Reads `{"latest": {component: version}}`. @throws Error for anything else */
export function readReleases(text: string): Releases {
  const { latest } = (JSON.parse(text) ?? {}) as { latest?: unknown }
  if (typeof latest !== 'object' || latest === null || Array.isArray(latest))
    throw new Error('latest: expected an object')
  const entries = Object.entries(latest)
  const isReadable = ([component, version]: [string, unknown]) =>
    /^[\w-]{1,64}$/.test(component) && typeof version === 'string' && /^[\x20-\x7e]{1,128}$/.test(version)
  if (entries.length > MAX_COMPONENTS || !entries.every(isReadable))
    throw new Error('latest: expected versions by component')
  return Object.fromEntries(entries) as Releases
}

/** The order of magnitude of the number of live pods. */
export function podsBucket(pods: number): string {
  if (pods === 0) return '0'
  const magnitude = 10 ** Math.min(4, Math.floor(Math.log10(pods)))
  return magnitude === 10_000 ? '10000+' : `${magnitude}-${magnitude * 10 - 1}`
}

/** The name that `uname -m` gives. */
export function architecture(arch: string): string {
  return { x64: 'x86_64', arm64: 'aarch64' }[arch] ?? arch.replace(/\W/g, '_').slice(0, 16)
}

/** Whether the installed chart differs from the latest one; false if either is unknown. */
export function isUpdateAvailable(chart: string, latest: Releases | null): boolean {
  return chart !== 'unknown' && latest?.chart !== undefined && latest.chart.replace(/\+.*$/s, '') !== chart
}
