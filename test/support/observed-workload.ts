/** Workloads with a stored union of syscalls, inserted without posts. */
import type { startApp } from './app.ts'
import { podPost } from './records.ts'
import { storeContributions } from './seccomp.ts'

type App = Awaited<ReturnType<typeof startApp>>

export interface ObservedWorkload {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly names: readonly string[]
  readonly arches: readonly string[]
  /** Contributing pods with their capture level; undefined for an agent without levels. */
  readonly pods: Readonly<Record<string, string | undefined>>
}

let made = 0

const HASH = '0123456789abcdef'

/** Stores a workload, by default with one pod that reported in full. Resolves to it and the path of its export. */
export async function observe(app: App, fields: Partial<ObservedWorkload> = {}) {
  const n = ++made
  const one = {
    namespace: `team-${n}`,
    kind: 'Deployment',
    name: 'web',
    names: ['futex', 'read', 'write'],
    arches: ['x86_64'],
    ...fields,
  }
  const pods = fields.pods ?? { [`web-${n}-0`]: 'full' }
  for (const [pod_name, capture_level] of Object.entries(pods)) {
    const { namespace: pod_namespace, kind: workload_kind, name: workload_name } = one
    const posted = await app.post(
      '/pod/spec',
      podPost({ pod_name, pod_namespace, workload_kind, workload_name, capture_level }),
    )
    if (posted.status !== 200) throw new Error(posted.text)
    await app.sql`
      insert into pod_syscalls (pod_name, pod_namespace, syscalls, arch, time_stamp)
      values (${pod_name}, ${pod_namespace}, ${one.names.join(',')}, ${one.arches[0] ?? ''}, now())`
    const contributor = { pod_name, pod_namespace, workload_kind, workload_name, capture_level: capture_level ?? null }
    await storeContributions(app.sql, [contributor], new Date().toISOString())
  }
  await app.sql`
    insert into workload_syscalls
    select ${one.namespace}, ${one.kind}, ${one.name}, ${one.names.join(',')},
           array(select json_array_elements_text(${JSON.stringify(one.arches)}::text::json)), ${HASH}, ${one.names.length}, now()`
  const of = [one.namespace, one.kind, one.name].map(encodeURIComponent).join('/')
  return { ...one, pods, hash: HASH, path: `/seccomp/profiles/${of}/export` }
}
