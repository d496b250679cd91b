/** The rows that an exposure reads, on tables many times larger. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { sessionSettings, settingStatement } from '../../lib/db/session.ts'
import { startApp } from '../support/app.ts'

const IMAGES = 2_000
const PODS = 8_000
const FLOWS = 40_000
const NAMESPACES = 40

interface Reads {
  relname: string
  seq_scan: number
  rows: number
}

test('an exposure reads rows of its vulnerability, the namespaces of its workloads and their pods only', async () => {
  const { sql } = await startApp()
  const digest = (n: string) => `'sha256:' || lpad(to_hex(${n}), 64, '0')`
  await sql.unsafe(`
    insert into image select ${digest('n')}, 'r', '{v1}', 'repo', now(), now() from generate_series(1, ${IMAGES}) n;
    insert into image_report (digest, source, kind, digest_kind, platform_manifests, manifest_digests, scanned_at, os_eosl, observed_in,
                              content_hash, item_count, sbom_sources, post, received_at)
    select ${digest('n')}, s, 'vulnerabilities', 'unknown', '{}', '{}', now(), false, '[]', 'h', 20, '{}', 'p', now()
    from generate_series(1, ${IMAGES}) n, unnest('{operator-scanner,db-matcher}'::text[]) s;
    insert into image_link select digest, source, digest, 1, now() from image_report;
    insert into image_finding (digest, source, severity, vuln_id, package_name, installed_version, fixed_versions, cvss, file_paths)
    select r.digest, r.source, c % 6, case when c = 1 and r.digest in (${digest('7')}, ${digest('8')}) then 'CVE-FEW' else 'CVE-' || c end,
           'p', '1', '{}', '{}', '{}'
    from image_report r, generate_series(1, 20) c;
    insert into workload_container
    select 'primary', 'ns-' || n % ${NAMESPACES}, 'Deployment', 'w-' || n, 'app', ${digest('n')}, 'regular', 'r', '{}', '{}',
           'pod-' || n, 'running', null, null, now(), now()
    from generate_series(1, ${IMAGES}) n;
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind, workload_name)
    select 'pod-' || n, '10.0.0.1', 'ns-' || n % ${NAMESPACES}, now(), 'node', false, '{}', 'Deployment', 'w-' || n % ${IMAGES}
    from generate_series(1, ${PODS}) n;
    insert into traffic (uuid, pod_name, pod_namespace, traffic_type, traffic_in_out_ip, time_stamp)
    select n, 'pod-' || n % ${PODS}, 'ns-' || n % ${NAMESPACES}, 'INGRESS', '8.8.8.8', now() - n % 7 * interval '1 day'
    from generate_series(1, ${FLOWS}) n;
    analyze`)
  const reads = await sql.begin(async (inside) => {
    await inside.unsafe(settingStatement(sessionSettings('read', 0), true))
    // The statistics of earlier reads of this session may be reported late.
    const read = () => inside<Reads[]>`
      select relname, seq_scan::int, (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows
      from pg_stat_xact_user_tables order by relname`
    const before = new Map((await read()).map((one) => [one.relname, one]))
    const [row] = await inside<
      { answer: { workloads: unknown[] } }[]
    >`select cve_exposure('cve-few', 72, 900, '{}') as answer`
    assert.equal(row!.answer.workloads.length, 2)
    return (await read())
      .map(({ relname, seq_scan, rows }) => ({
        relname,
        seq_scan: seq_scan - (before.get(relname)?.seq_scan ?? 0),
        rows: rows - (before.get(relname)?.rows ?? 0),
      }))
      .filter(({ rows }) => rows > 0)
  })
  assert.deepEqual(
    reads.filter(({ seq_scan }) => seq_scan > 0),
    [],
  )
  const rows = Object.fromEntries(reads.map((one) => [one.relname, one.rows]))
  const inNamespaces = (2 * PODS) / NAMESPACES
  const bounds = {
    image: 8,
    image_finding: 32,
    image_link: 32,
    image_report: 32,
    pod: inNamespaces,
    traffic: (2 * PODS * 5) / IMAGES,
    workload_container: 8,
  }
  assert.deepEqual(Object.keys(rows), Object.keys(bounds))
  for (const [table, bound] of Object.entries(bounds))
    assert.ok(rows[table]! <= bound, `${rows[table]} rows of ${table}`)
})
