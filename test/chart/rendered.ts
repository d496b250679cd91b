/** The chart as rendered by scripts/chart-check.sh, by toggle. Under plain `npm test` nothing is rendered. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'

// biome-ignore lint/suspicious/noExplicitAny: a manifest is what the test says it is.
export type Json = any

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    name: string
    namespace?: string
    labels?: Record<string, string>
    annotations?: Record<string, string>
  }
  readonly [field: string]: Json
}

const folder = process.env.CHART_RENDERED

/** For `test`: the reason to skip, or false. */
export const skip = folder === undefined ? 'needs helm: scripts/chart-check.sh runs it' : false

export const toggles: readonly string[] =
  folder === undefined
    ? []
    : readdirSync(folder)
        .map((name) => name.replace(/\.yaml$/, ''))
        .sort()

const read = new Map<string, readonly Manifest[]>()

export function rendered(toggle: string): readonly Manifest[] {
  const present = read.get(toggle)
  if (present !== undefined) return present
  const manifests = manifestsOf(readFileSync(join(folder!, `${toggle}.yaml`), 'utf8'))
  read.set(toggle, manifests)
  return manifests
}

export const manifestsOf = (text: string) => (loadAll(text) as (Manifest | null)[]).filter((one) => one !== null)

/** The only object of a kind with this name, without the name of the release. */
export function object(toggle: string, kind: string, name: string): Manifest {
  const found = find(toggle, kind, name)
  if (found === undefined) throw new Error(`${toggle} has no ${kind} ${name}`)
  return found
}

export const find = (toggle: string, kind: string, name: string) =>
  rendered(toggle).find((one) => one.kind === kind && one.metadata.name === `${releaseOf(toggle)}-${name}`)

export const ofKind = (toggle: string, kind: string) => rendered(toggle).filter((one) => one.kind === kind)

/** First part of the names where it differs from the default. */
const FIRST_PARTS: Record<string, string> = { placement: 'telemetry', 'long-name': `a${'b'.repeat(25)}` }
const releaseOf = (toggle: string) => FIRST_PARTS[toggle] ?? 'kguardian'

/** The pod template of a manifest; null if it has none. */
export function podTemplate(manifest: Manifest): Json | null {
  const { kind, spec } = manifest
  if (kind === 'Pod') return manifest
  if (kind === 'CronJob') return spec.jobTemplate.spec.template
  return ['Deployment', 'StatefulSet', 'DaemonSet', 'Job'].includes(kind) ? spec.template : null
}

/** Manifests with pods. */
export const workloads = (toggle: string) => rendered(toggle).filter((one) => podTemplate(one) !== null)

/** The only container of a workload, and its environment by name. */
export const container = (manifest: Manifest): Json => podTemplate(manifest).spec.containers[0]
export const environment = (manifest: Manifest): Record<string, Json> =>
  Object.fromEntries(container(manifest).env.map((one: Json) => [one.name, one.value ?? one.valueFrom]))
