/** Rows of the runtime inventory, inserted directly instead of posted. */
import type postgres from 'postgres'

export interface ExecutableRow {
  namespace: string
  workload: string
  kind: string
  container: string
  image: string
  entryKind: 'exec' | 'lib'
  path: string
  complete: boolean
  source: 'ebpf' | 'backfill'
  origin: string
  first: string
  last: string
}

export interface CoverageRow {
  id: string
  namespace: string
  workload: string
  container: string
  image: string
  mode: 'exec' | 'full'
  lib: boolean
  /** Seconds before now. */
  secs: number
  dropSecs: number | null
}

let made = 0
export const newNamespace = () => `runtime-${++made}`
export const newImage = () => `sha256:${(++made).toString(16).padStart(64, '0')}`

/** The meaning of `now` in the defaults. */
export const FIRST = '2026-01-01T00:00:00'
export const LAST = '2026-01-02T00:00:00.5'

export async function storeExecutables(sql: postgres.Sql, rows: readonly Partial<ExecutableRow>[]): Promise<void> {
  const whole = rows.map((row) => ({
    ...{
      namespace: 'shop',
      workload: 'web',
      kind: 'Deployment',
      container: 'app',
      image: '',
      entryKind: 'exec',
      path: '/bin/x',
    },
    ...{ complete: true, source: 'ebpf', origin: 'image', first: FIRST, last: LAST },
    ...row,
  }))
  await sql`
    insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path, path_hash,
                                    path_complete, source, origin, last_pod_name, first_seen, last_seen)
    select 'primary', namespace, kind, workload, container, image, "entryKind", path, sha256(convert_to(path, 'UTF8')), complete, source, origin, 'pod',
           first, last
    from json_to_recordset(${JSON.stringify(whole)}::text::json) r(namespace text, workload text, kind text, container text, image text,
         "entryKind" text, path text, complete boolean, source text, origin text, first timestamp, last timestamp)`
}

export async function storeCoverage(sql: postgres.Sql, rows: readonly Partial<CoverageRow>[]): Promise<void> {
  const whole = rows.map((row) => ({
    ...{
      id: `c${++made}`,
      namespace: 'shop',
      workload: 'web',
      container: 'app',
      image: '',
      mode: 'full',
      lib: true,
      secs: 10,
      dropSecs: null,
    },
    ...row,
  }))
  await sql`
    insert into runtime_coverage (cluster_id, container_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, pod_name,
                                  node_name, mode, exec_probe, lib_probe, start_mode, tracking_since, covered_since, last_heartbeat, heartbeat_secs,
                                  gaps, events_dropped, last_drop_at, unsent, incomplete, ended)
    select 'primary', id, namespace, 'Deployment', workload, container, image, id, 'node', mode, true, lib, 'start', t.now - interval '60 days',
           t.now - interval '60 days', t.now - secs * interval '1 second', 300, 0, 0, t.now - "dropSecs" * interval '1 second', 0, false, false
    from (values (now() at time zone 'utc')) t(now),
         json_to_recordset(${JSON.stringify(whole)}::text::json) r(id text, namespace text, workload text, container text, image text, mode text,
         lib boolean, secs integer, "dropSecs" integer)`
}
