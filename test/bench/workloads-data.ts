/**
 * The data of the bench of in-use states: workloads with two containers and the image that one of them ran before, the
 * findings and SBOMs of all images, and the files that ran. Payloads and files are stored by the functions of the
 * database that ingest calls, so that whatever these note is noted.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type postgres from 'postgres'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from '../support/log.ts'

export interface Scale {
  readonly workloads: number
  /** At least as many as workloads: one for each, some that two share as their second, and earlier ones. */
  readonly images: number
  readonly findings: number
  readonly components: number
  readonly files: number
}

/** The options of benchmarks on this data: its scale, the seconds of a read, and the folder that keeps the database. */
export function readOptions() {
  const { values } = parseArgs({
    options: {
      workloads: { type: 'string', default: '2000' },
      images: { type: 'string', default: '5000' },
      findings: { type: 'string', default: '500000' },
      components: { type: 'string', default: '1500000' },
      files: { type: 'string', default: '2000000' },
      seconds: { type: 'string', default: '3' },
      data: { type: 'string' },
    },
  })
  const scale: Scale = {
    ...{ workloads: Number(values.workloads), images: Number(values.images), findings: Number(values.findings) },
    ...{ components: Number(values.components), files: Number(values.files) },
  }
  return { scale, seconds: Number(values.seconds), data: values.data }
}

export const NAMESPACES = 40
/** Packages are those of so many base images. */
const BASES = 30
const VULNERABILITIES = 20_000
/** Calls in one statement. */
const AT_ONCE = 100
const EACH_MANY_FILES = 20
const UNUSED = 6
/** The share of the paths of a container that are made twice and stored once. */
const REPEATED = 0.04

export const imageDigest = (n: number) => `sha256:${n.toString(16).padStart(64, '0')}`
export const namespaceOf = (workload: number) => `ns-${workload % NAMESPACES}`
export const workloadName = (workload: number) => `app-${workload}`

/** Package `i` of an image, and its file `k`. */
export const packageName = (image: number, i: number) => `package-${image % BASES}-${i}`
const fileOf = (image: number, i: number, k: number) =>
  `usr/lib/${packageName(image, i)}/lib${i}-${k}.so.${1 + (i % 3)}`

/** The vulnerability of finding `i` of an image. */
export const vulnerabilityOf = (image: number, i: number) =>
  `CVE-2026-${10_000 + (((image % BASES) * 613 + (image % 7) * 11 + i * 37) % VULNERABILITIES)}`

/** A finding as a scanner posts it; `change` makes a payload differ. */
export const findingOf = (image: number, i: number, change: string) => ({
  id: vulnerabilityOf(image, i),
  package: { name: packageName(image, 3 * i), version: `1.${i}${change}`, type: 'debian' },
  ...{ severity: ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE'][i % 5], class: 'os-pkgs', epss: (i % 50) / 200 },
  ...{ fixed_version: i % 3 === 0 ? '2' : null, title: `A made-up title of finding ${i} of ${image}` },
})

/** Component `i` of an image as an SBOM lists it; `change` makes a payload differ. */
export const componentOf = (image: number, i: number, change: string) => ({
  ...{ name: packageName(image, i), version: `1.${i}`, type: 'debian', class: 'os-pkgs' },
  purl: `pkg:deb/debian/${packageName(image, i)}@1.${i}`,
  licenses: i === 0 ? [change] : [],
  file_paths: Array.from({ length: i % EACH_MANY_FILES === 0 ? 16 : 1 + (i % 6) }, (_, k) => fileOf(image, i, k)),
})

/**
 * A file that ran in the container of an image: most are of a package, by their path, an alias or a soname. No file of
 * each sixth package ever ran.
 */
export function ranPath(image: number, j: number, packages: number): string {
  const i = ((j * 7) % packages) + (((j * 7) % packages) % UNUSED === 0 ? 1 : 0)
  const file = fileOf(image, i, 0)
  if (j % 5 === 0) return `/srv/app-${image}/bin/tool-${j}`
  if (j % 5 === 1) return `/${file.slice('usr/'.length)}.0.${j}`
  return j % 5 === 2 ? `/${file}.${j % 9}.1` : `/${j % 3 === 0 ? file : fileOf(image, i, j % 4)}`
}

/** The image that the first container of workload `w` ran before. */
export function earlierImageOf({ workloads, images }: Scale, w: number): number {
  const others = Math.max(1, images - workloads)
  const seconds = Math.ceil(others / 3)
  return workloads + seconds + (w % Math.max(1, others - seconds))
}

/** The functions that name images, packages and files, as above. */
const HELPERS = [
  `create or replace function bench_digest(n int) returns text language sql immutable
   as $$ select 'sha256:' || lpad(to_hex(n), 64, '0') $$`,
  `create or replace function bench_package(image int, i int) returns text language sql immutable
   as $$ select 'package-' || image % ${BASES} || '-' || i $$`,
  `create or replace function bench_file(image int, i int, k int) returns text language sql immutable
   as $$ select 'usr/lib/' || bench_package(image, i) || '/lib' || i || '-' || k || '.so.' || 1 + i % 3 $$`,
  `create or replace function bench_ran(image int, j int, packages int) returns text language sql immutable
   as $$ select case when j % 5 = 0 then '/srv/app-' || image || '/bin/tool-' || j
                     when j % 5 = 1 then substr(bench_file(image, i, 0), 4) || '.0.' || j
                     when j % 5 = 2 then '/' || bench_file(image, i, 0) || '.' || j % 9 || '.1'
                     else '/' || bench_file(image, i, case when j % 3 = 0 then 0 else j % 4 end) end
         from (select p + case when p % ${UNUSED} = 0 then 1 else 0 end as i
          from (select (j * 7) % packages as p) p) x $$`,
]

const HEADER = `json_build_object(
  'digest', bench_digest(m), 'source', 'operator-scanner', 'digest_kind', 'unknown', 'platform_manifests', '{}'::json,
  'scanned_at', now() at time zone 'utc' - interval '2 days', 'os_eosl', false, 'observed_in', '[]'::json,
  'content_hash', 'seeded', 'sbom_sources', '[]'::json, 'post', 'seeded-' || m, 'item_count', %s)`

interface Counts {
  readonly perImage: { readonly findings: number; readonly components: number }
  readonly perContainer: number
  readonly containers: number
}

/** Each workload has three containers in the inventory: two that run, and what the first of them ran before. */
function countsOf({ workloads, images, findings, components, files }: Scale): Counts {
  const containers = 3 * workloads
  return {
    perImage: { findings: Math.ceil(findings / images), components: Math.ceil(components / images) },
    ...{ containers, perContainer: Math.ceil((files / containers) * (1 + REPEATED)) },
  }
}

/** The containers of workload `w`: name, image and whether it runs. */
const containers = ({ workloads, images }: Scale) => {
  const others = Math.max(1, images - workloads)
  const seconds = Math.ceil(others / 3)
  return `(values ('app', w, true), ('side', ${workloads} + w % ${seconds}, true),
                  ('app', ${workloads} + ${seconds} + w % ${Math.max(1, others - seconds)}, false)) c(name, image,
                   runs)`
}

function inventory(scale: Scale): string[] {
  const all = `generate_series(0, ${scale.workloads - 1}) w cross join lateral ${containers(scale)}`
  const now = `now() at time zone 'utc'`
  const since = `${now} - interval '10 days'`
  const owner = `'ns-' || w % ${NAMESPACES}, 'Deployment', 'app-' || w`
  return [
    `insert into image (digest, repository, tags, digest_kind, first_seen, last_seen)
     select bench_digest(n), 'registry.test/team/app-' || n, '{v1}', 'repo', ${since}, ${now}
     from generate_series(0, ${scale.images - 1}) n`,
    `insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind,
     workload_name,
                      host_network, started_at, pod_uid, running_containers, has_owner)
     select 'app-' || w || '-0', '10.0.0.1', 'ns-' || w % ${NAMESPACES}, ${now}, 'node-' || w % 50, false, '{10.0.0.1}',
            'Deployment', 'app-' || w, false, ${since}, 'uid-' || w, '{app,side}', true
     from generate_series(0, ${scale.workloads - 1}) w`,
    `insert into workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name,
     image_digest,
                                     container_kind, image_ref, security_context, pod_security, last_pod_name, state,
                                     first_seen, last_seen)
     select 'primary', ${owner}, c.name, bench_digest(c.image), 'regular', 'registry.test/team/app', '{}', '{}',
            'app-' || w || case when c.runs then '-0' else '-gone' end,
             case when c.runs then 'running' else 'terminated' end,
            ${since}, case when c.runs then ${now} else ${now} - interval '2 days' end
     from ${all}`,
    `select store_heartbeats((
       select json_agg(json_build_object(
         'container_id', md5(w || c.name || c.image), 'pod_namespace', 'ns-' || w % ${NAMESPACES},
         'workload_kind', 'Deployment', 'workload_name', 'app-' || w, 'container_name', c.name,
         'image_digest', bench_digest(c.image), 'pod_name', 'app-' || w || case when c.runs then '-0' else '-gone' end,
         'node_name', 'node-' || w % 50, 'mode', 'full', 'exec_probe', true, 'lib_probe', true, 'start_mode', 'start',
         'tracking_since', ${since}, 'heartbeat_at', case when c.runs then ${now} else ${now} - interval '2 days' end,
         'heartbeat_secs', 86400, 'events_dropped', case when w % 20 = 0 then 1 else 0 end, 'unsent', 0,
         'incomplete', false, 'ended', not c.runs))
       from ${all}))`,
    `insert into flow_edge (id, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, peer_kind,
     peer_namespace,
                            peer_workload_kind, peer_workload_name, traffic_in_out_ip, is_public, port, ip_protocol,
                             decision,
                            flows, pods, first_seen_at, last_new_at, counted_at)
     select gen_random_uuid(), 'INGRESS', ${owner}, p.kind, p.namespace, p.workload_kind, p.workload, p.ip,
      p.ip is not null,
            '8080', 'TCP', 'ALLOW', 10, 1, ${since}, ${now} - interval '1 day', ${now}
     from generate_series(0, ${scale.workloads - 1}) w
     cross join lateral (
       values (0, 'pod', 'ns-' || w % ${NAMESPACES}, 'Deployment', 'caller', null),
              (1, 'pod', 'monitoring', 'Deployment', 'prometheus', null),
              (2, null, null, null, null, '93.184.216.34')) p(n, kind, namespace, workload_kind, workload, ip)
     where p.n <= w % 4`,
  ]
}

/** The numbers from one on, as many as one statement takes. */
const some = (from: number, end: number) => `generate_series(${from}, ${Math.min(from + AT_ONCE, end) - 1})`

const findings = ({ images }: Scale, count: number, from: number) => `
  select store_findings(${HEADER.replace('%s', String(count))}, (
    select json_agg(json_build_object(
      'severity', i % 5, 'vuln_id',
       'CVE-2026-' || 10000 + (m % ${BASES} * 613 + m % 7 * 11 + i * 37) % ${VULNERABILITIES},
      'package_name', bench_package(m, 3 * i), 'installed_version', '1.' || i, 'package_type', 'debian', 'class',
       'os-pkgs',
      'fixed_versions', case when i % 3 = 0 then '["2"]'::json else '[]' end, 'cvss', '{}'::json, 'file_paths',
       '[]'::json,
      'title', 'A made-up title of finding ' || i || ' of ' || m, 'epss', (i % 50) / 200.0,
      'kev', case when i % 50 = 0 and m % ${BASES} < 3 then true end, 'aliases', '[]'::json, 'omitted', 0))::text
    from generate_series(0, ${count - 1}) i))
  from ${some(from, images)} m`

const sboms = ({ images }: Scale, count: number, from: number) => `
  select store_sbom(${HEADER.replace('%s', String(count))}, null, (
    select json_agg(json_build_object(
      'name', bench_package(m, i), 'version', '1.' || i, 'type', 'debian', 'class', 'os-pkgs',
      'purl', 'pkg:deb/debian/' || bench_package(m, i) || '@1.' || i, 'licenses', '[]'::json,
      'file_paths', (select json_agg(bench_file(m, i, k)) from generate_series(0,
       case when i % ${EACH_MANY_FILES} = 0 then 15
                                                                                else i % 6 end) k)))::text
    from generate_series(0, ${count - 1}) i))
  from ${some(from, images)} m`

/** The files of the three containers of so many workloads. */
const files = (scale: Scale, { perContainer, perImage }: Counts, from: number) => `
  select store_executables(
    array['ns-' || w % ${NAMESPACES}], '{Deployment}', array['app-' || w], array[c.name], array[bench_digest(c.image)],
    array['app-' || w || '-0'], f.owners, f.kinds, f.paths, f.complete, f.sources, f.origins, f.owners, f.firsts,
     f.lasts)
  from ${some(from, scale.workloads)} w
  cross join lateral ${containers(scale)}
  cross join lateral (
    select array_agg(1) as owners, array_agg(case when j % 4 = 0 then 'exec' else 'lib' end) as kinds,
     array_agg(path) as paths,
           array_agg(true) as complete, array_agg('ebpf'::text) as sources, array_agg('image'::text) as origins,
           array_agg(now() at time zone 'utc' - interval '9 days') as firsts,
           array_agg(now() at time zone 'utc' - j * interval '1 second') as lasts
    from (select distinct on (bench_ran(c.image, j, ${perImage.components})) j,
                 bench_ran(c.image, j, ${perImage.components}) as path
          from generate_series(0, ${perContainer - 1}) j) j) f`

async function seed(sql: postgres.Sql, scale: Scale): Promise<void> {
  const counts = countsOf(scale)
  for (const text of inventory(scale)) await sql.unsafe(text)
  await sql.unsafe('analyze')
  for (let from = 0; from < scale.workloads; from += AT_ONCE) await sql.unsafe(files(scale, counts, from))
  for (let from = 0; from < scale.images; from += AT_ONCE) {
    await sql.unsafe(sboms(scale, counts.perImage.components, from))
    await sql.unsafe(findings(scale, counts.perImage.findings, from))
  }
}

export interface Site {
  readonly url: string
  readonly sql: postgres.Sql
  /** Whether the job has not run on the data. */
  readonly isNew: boolean
  stop(): Promise<void>
}

const print = (line: string) => process.stdout.write(`${line}\n`)

/** Starts a database with the data, kept in `data` if that is given and made already. */
export async function startWorkloads(scale: Scale, data: string | undefined): Promise<Site> {
  const dataDir = data ?? mkdtempSync(join(tmpdir(), 'broker-workloads-'))
  process.once('exit', () => data ?? rmSync(dataDir, { recursive: true, force: true }))
  const server = await startEmbedded({ dataDir, log: noLog })
  await migrate({ connection: server.options, log: noLog })
  const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  await sql.unsafe(`set synchronous_commit = off`)
  for (const text of HELPERS) await sql.unsafe(text)
  const [stored] = await sql<{ any: boolean }[]>`select exists (select from runtime_executable) as any`
  if (!stored!.any) {
    const startedAt = performance.now()
    await seed(sql, scale)
    await sql.unsafe('vacuum analyze')
    print(`seeded in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  }
  // Kept data has aged: its instances are still watched.
  await sql`update runtime_coverage set last_heartbeat = now() at time zone 'utc' where not ended`
  await sql`update pod set time_stamp = now() at time zone 'utc'`
  await sql`update flow_edge set last_new_at = now() at time zone 'utc' - interval '1 day'`
  const [known] = await sql<{ any: boolean }[]>`select exists (select from cve_summary_state) as any`
  return {
    ...{ url: server.url, sql, isNew: !known!.any },
    async stop() {
      await sql.end({ timeout: 1 })
      await server.stop()
    },
  }
}
