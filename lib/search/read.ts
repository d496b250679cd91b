/** Reads the hits of GET /search with one statement (docs/contract.md#search). */
import { fixed, type Gate } from '../db/index.ts'
import type { RawRow } from '../records/index.ts'
import { type HitType, HREFS, MAX_PEERS, TYPES } from './hits.ts'
import type { Question } from './question.ts'

/** Names of a type that are looked at, in the order of bytes; only those that run come first among them. */
const MAX_LOOKED = 200
/** Packages that are looked at: each may be in thousands of images. */
const MAX_PACKAGES = 50
/** Payloads of a package in which a version is looked for. */
const MAX_PAYLOADS = 150
/** Ids of a vulnerability under which findings are stored. */
const MAX_VULNERABILITIES = 50

const NOT_COVERED = 'notCovered'
const NOT_READ = 'notRead'

const texts = (json: string) => `array(select json_array_elements_text(${json}))`
const named = (column: string) => `json_to_recordset(a.${column}) q(namespace text, kind text, name text)`

const SEARCH = fixed(`
  with asked as materialized (
    select $1::text as vulnerability, $2::text as package_name, $3::boolean as prefixes, $4::integer as window_secs,
           $5::text as purl, $6::text as purl_base, $7::text as purl_version, $8::text::json as purl_names,
           $9::text::json as digests, $10::text::json as exact, $11::text as suffix, $12::text as tag,
           $13::text::json as workloads,
           $14::text::json as pods, $15::text::json as services, $16::text::json as namespaces, $17::text::json as nodes,
           $18::text as address)
  select h.type, h.running, h.place::text, h.key, h.hit::text
  from asked a
  cross join lateral (
    select 'vulnerability' as type, v.*
    from search_vulnerabilities(a.vulnerability, ${MAX_VULNERABILITIES + 1}, a.window_secs) v
    union all
    select 'package', p.*
    from search_packages(a.package_name, false, '{}', a.prefixes, 0, ${MAX_PACKAGES + 1}, a.window_secs) p
    union all
    select 'package', p.*
    from search_packages(a.purl_base, true, ${texts('a.purl_names')}, a.purl_version is null,
                         case when a.purl_version is null then 0 else 1 end, ${MAX_PACKAGES + 1}, a.window_secs) p
    union all
    select 'package', p.*
    from search_package_version(a.purl, a.purl_base, a.purl_version, ${texts('a.purl_names')}, ${MAX_PAYLOADS},
                                a.window_secs) p
    union all
    select 'image', i.*
    from search_images(${texts('a.digests')}, ${MAX_LOOKED + 1}, a.window_secs) i
    where json_array_length(a.digests) > 0
    union all
    select coalesce(r.hit ->> 'type', 'repository'), r.*
    from search_repositories(${texts('a.exact')}, a.suffix, a.tag, ${MAX_LOOKED + 1}, ${MAX_LOOKED + 1},
                             a.window_secs) r
    where json_array_length(a.exact) > 0
    union all
    select 'workload', w.*
    from ${named('workloads')}
    cross join lateral search_workloads(q.namespace, q.kind, q.name, a.prefixes, ${MAX_LOOKED + 1}, a.window_secs) w
    union all
    select 'pod', p.*
    from ${named('pods')}
    cross join lateral search_pods(q.namespace, q.name, a.prefixes, ${MAX_LOOKED + 1}) p
    union all
    select 'service', s.*
    from ${named('services')}
    cross join lateral search_services(q.namespace, q.name, a.prefixes, ${MAX_LOOKED + 1}) s
    union all
    select 'namespace', n.*
    from json_array_elements_text(a.namespaces) q(name)
    cross join lateral search_namespaces(q.name, a.prefixes, ${MAX_LOOKED + 1}, a.window_secs) n
    union all
    select 'node', n.*
    from json_array_elements_text(a.nodes) q(name)
    cross join lateral search_nodes(q.name, a.prefixes, ${MAX_LOOKED + 1}) n
    union all
    select coalesce(d.hit ->> 'type', 'address'), d.*
    from search_address(a.address, ${MAX_LOOKED + 1}, ${MAX_PEERS}) d
    union all
    select '${NOT_COVERED}', null, 0, not_covered(a.window_secs)::text, null
    union all
    select '${NOT_READ}', null, 0, not_read()::text, null) h`)

interface Row {
  readonly type: HitType
  readonly running: boolean | null
  readonly place: number
  readonly key: Buffer
  readonly hit: Record<string, unknown>
}

const MATCHES = ['exact', 'part', 'prefix'] as const

/** Running ones first, then the closest; equal ones by type and key. */
const inOrder = (a: Row, b: Row) =>
  Number(b.running === true) - Number(a.running === true) ||
  a.place - b.place ||
  TYPES.indexOf(a.type) - TYPES.indexOf(b.type) ||
  Buffer.compare(a.key, b.key)

/**
 * Returns at most `limit` hits of each type, the types of which there are more, how many running images have neither
 * report nor SBOM, and how many payloads were not looked at.
 */
export async function readHits(gate: Gate, question: Question, limit: number, windowSecs: number) {
  const { vulnerability, packageName, prefixes, purl, digests, repository, address } = question
  const { workloads, pods, services, namespaces, nodes } = question
  const list = (values: readonly unknown[]) => JSON.stringify(values)
  const rows: RawRow[] = await gate((sql) =>
    SEARCH(
      sql,
      ...[vulnerability, packageName, prefixes, windowSecs],
      ...[purl?.plain ?? null, purl?.base ?? null, purl?.version ?? null, list(purl?.names ?? [])],
      ...[list(digests), list(repository?.exact ?? []), repository?.suffix ?? null, repository?.tag ?? null],
      ...[list(workloads), list(pods), list(services), list(namespaces), list(nodes), address],
    ).raw(),
  )
  const truncated = new Set<HitType>()
  const found = new Map<string, Row>()
  let notCovered = 0
  let notRead = 0
  for (const [type, running, place, key, hit] of rows) {
    const typeName = String(type)
    if (typeName === NOT_COVERED) notCovered = Number(key)
    else if (typeName === NOT_READ) notRead = Number(key)
    else if (hit === null) truncated.add(typeName as HitType)
    else {
      const row: Row = {
        ...{ type: typeName as HitType, place: Number(place), key: key!, hit: JSON.parse(String(hit)) },
        running: running === null ? null : String(running) === 't',
      }
      // Two readings of a text may find the same.
      const id = `${typeName} ${key}`
      const known = found.get(id)
      if (known === undefined || row.place < known.place) found.set(id, row)
    }
  }
  const hits: object[] = []
  const counts = new Map<HitType, number>()
  for (const { type, hit, running, place } of [...found.values()].sort(inOrder)) {
    const count = (counts.get(type) ?? 0) + 1
    counts.set(type, count)
    if (count > limit) truncated.add(type)
    else hits.push({ ...hit, running, match: MATCHES[place], href: HREFS[type](hit) })
  }
  return { hits, truncated: TYPES.filter((type) => truncated.has(type)), notCovered, notRead }
}
