/** Posts of pods with containers, and helpers for their rows. */
import { createHash } from 'node:crypto'
import type postgres from 'postgres'
import { podPost } from './records.ts'

type Fields = Record<string, unknown>

let made = 0

export const digestOf = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`
/** A digest that no other test uses. */
export const newDigest = () => digestOf(`image-${made++}`)
/** A namespace that no other test uses. */
export const newNamespace = () => `ns-${made++}`

/** A container as agents report it. */
export const container = (name: string, digest?: string, fields: Fields = {}): Fields => ({
  name,
  kind: 'regular',
  image: 'registry.test/team/app:v1',
  digest,
  digest_kind: digest && 'repo',
  repository: 'registry.test/team/app',
  tag: 'v1',
  state: 'running',
  ...fields,
})

/** A post of a replica of Deployment `web` with these containers. */
export const replica = (pod_namespace: string | null, containers: unknown, fields: Fields = {}) =>
  podPost({ pod_namespace, workload_kind: 'Deployment', workload_name: 'web', containers, ...fields })

/** Makes the stored images and containers this many seconds older. */
export async function age(sql: postgres.Sql, secs: number): Promise<void> {
  await sql`update image set first_seen = first_seen - make_interval(secs => ${secs}), last_seen = last_seen - make_interval(secs => ${secs})`
  await sql`
    update workload_container
    set first_seen = first_seen - make_interval(secs => ${secs}), last_seen = last_seen - make_interval(secs => ${secs}),
        ref_seen_at = ref_seen_at - make_interval(secs => ${secs})`
}

/** All rows with their versions, so that any write is visible. */
export async function versions(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ version: string }[]>`
    select format('%s %s %s', digest, ctid, xmin) as version from image
    union all select format('%s %s %s %s', container_name, image_digest, ctid, xmin) from workload_container order by 1`
  return rows.map(({ version }) => version)
}

/** Locks that are held or awaited on the tables of the inventory. */
export async function rowLocks(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ xmax: string }[]>`
    select xmax::text from image where xmax::text <> '0' union all select xmax::text from workload_container where xmax::text <> '0'`
  return rows.map(({ xmax }) => xmax)
}
