import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { forgetPackages, readPackages } from '../../jobs/supply-chain/steps.ts'
import {
  type Asked,
  type Container,
  componentsOf,
  hitsOf,
  type Image,
  type Kind,
  notCovered,
  type Payload,
  type Row,
  type Short,
  type Store,
  type Via,
} from '../supply-chain/search-model.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { component, finding, storeFindings, storeSbom } from '../support/supply-chain.ts'

const STORES = depth(12, 10_000)
const app = await startApp()

const digest = (n: number) => `sha256:${n.toString(16).padStart(4, '0').repeat(16)}`

const NAMES = [
  'log4j',
  'Log4j',
  'LOG4J',
  'log4j-core',
  'log4j_core',
  'log4j%',
  'log4jx',
  'log',
  'l',
  '%',
  '_',
  'log4j\\',
]
const GROUPED = [
  'org.apache:log4j-core',
  'ORG.apache:Log4j',
  'a:b:log4j',
  'log4j:',
  'ünïcode',
  'ÜNÏCODE',
  'log4j\u{10ffff}',
]
const PURLS = [
  ...[
    'pkg:maven/org.apache/log4j-core@1',
    'pkg:maven/org.apache/log4j-core@2?type=jar',
    'pkg:maven/ORG.apache/log4j-core',
  ],
  ...[
    'pkg:maven/org.apache/log4j@1',
    'pkg:npm/%40log/log4j@1',
    'pkg:npm/@log/log4j@2',
    'pkg:deb/debian/log4j@1%2B2?arch=x',
  ],
  ...['pkg:deb/debian/log4j_core@1#sub', 'pkg:generic/log4j%25@1', 'pkg:golang/log/log4j/v2@v1'],
]
const QUERIES = [
  ...[...NAMES, ...GROUPED, ...PURLS],
  ...[
    'log4',
    'LOG4J-',
    'org.apache',
    'pkg:',
    'pkg:maven/org',
    'PKG:npm/@log/log4j',
    'pkg:npm/log4j',
    'pkg:deb/debian/log4j@1+2',
  ],
  ...[
    'pkg:maven/org.apache/log4j-core@2',
    'pkg:maven/org.apache/log4j-core@1?type=jar',
    'pkg:maven/org.apache/log4j-core@9',
  ],
  ...[
    '000000',
    '000100',
    '0001000',
    'SHA256:0002',
    'sha256:000200',
    `team/app:v1@${digest(1)}`,
    digest(17),
    digest(33),
  ],
  ...[
    'team/app',
    'TEAM/app',
    'app',
    'am/app',
    'registry:5000/team/app:v1',
    'docker.io/library/app',
    'app:v2',
    'library/app',
  ],
  ...[
    'web',
    'we',
    'w',
    'prod/web',
    'deployment/web',
    'deploy/web',
    'prod/Deployment/web',
    'prod/po/web-0',
    'pod/web-0',
  ],
  ...[
    'prod',
    'pro',
    'ns/prod',
    'web-',
    'dev/web-1',
    'node-1',
    'nodes/node-1',
    'svc/web',
    ' web ',
    'services/prod',
    'x/ns/prod',
  ],
]

const text = (all: readonly string[]) => fc.constantFrom(...all)
const row: fc.Arbitrary<Row> = fc.record({
  name: text([...NAMES, ...GROUPED]),
  version: fc.constantFrom(null, '1', '2'),
  purl: fc.oneof(fc.constant(null), text(PURLS)),
  type: fc.constantFrom(null, null, 'jar', 'deb'),
})
const container: fc.Arbitrary<Container> = fc.record({
  namespace: text(['prod', 'dev', 'production']),
  kind: text(['Deployment', 'StatefulSet', 'Pod']),
  workload: text(['web', 'web-api', 'Web', 'db']),
  name: text(['app', 'side']),
  runs: fc.boolean(),
})
const placeOf = ({ namespace, kind, workload, name }: Container) => [namespace, kind, workload, name].join('/')
const IMAGES = 3
const images: fc.Arbitrary<Image[]> = fc
  .array(
    fc.record({
      repository: fc.constantFrom(
        null,
        'registry:5000/team/app',
        'docker.io/library/app',
        'app',
        'quay.io/Team/App',
        'team/app',
      ),
      tags: fc.subarray(['v1', 'v2']),
      containers: fc.uniqueArray(container, { maxLength: 3, selector: placeOf }),
    }),
    { minLength: 1, maxLength: IMAGES },
  )
  .map((all) => all.map((one, i) => ({ ...one, digest: digest(i) })))

/** Payloads that were posted under digests of their own stand for one image each, in one way for all. */
const FOREIGN = 3
interface Story {
  readonly images: Image[]
  readonly vias: readonly (readonly [Via, number])[]
  readonly posts: readonly (readonly [digest: number, source: string, kind: Kind, rows: Row[]])[]
  readonly replaced: readonly (readonly [post: number, rows: Row[]])[]
  /** How many payloads a call of the job reads, before and after some are replaced; null for no call. */
  readonly reads: readonly [number | null, number | null]
}
const postKey = ([at, source, kind]: Story['posts'][number]) => `${at}/${source}/${kind}`
const rows = fc.array(row, { minLength: 1, maxLength: 6 })
const story: fc.Arbitrary<Story> = fc.record({
  images,
  vias: fc.array(fc.tuple(fc.constantFrom<Via>('index', 'manifest', 'tag', 'none'), fc.nat({ max: IMAGES - 1 })), {
    minLength: FOREIGN,
    maxLength: FOREIGN,
  }),
  posts: fc.uniqueArray(
    fc.tuple(
      fc.nat({ max: IMAGES + FOREIGN - 1 }),
      text(['operator-scanner', 'db-matcher', 'registry']),
      fc.constantFrom<Kind>('sbom', 'vulnerabilities'),
      rows,
    ),
    { minLength: 2, maxLength: 6, selector: postKey },
  ),
  replaced: fc.array(fc.tuple(fc.nat({ max: 5 }), rows), { maxLength: 2 }),
  reads: fc.tuple(fc.constantFrom(null, 1, 200), fc.constantFrom(null, 200)),
})

const PODS = [
  ...[{ namespace: 'prod', name: 'web-0', node: 'node-1', isDead: false }],
  ...[{ namespace: 'dev', name: 'web-1', node: 'node-10', isDead: true }],
]
const SERVICES = [
  ...[{ namespace: 'prod', name: 'web', address: '10.96.0.1' }],
  ...[{ namespace: 'services', name: 'web', address: '10.96.0.2' }],
]

const TABLES = [
  ...['image', 'workload_container', 'image_report', 'image_link', 'image_component', 'image_finding', 'finding_sent'],
  ...['cve_alias', 'payload_packages', 'package_entry', 'pod', 'service'],
]

async function emptied(): Promise<void> {
  await app.sql.unsafe(`with ${TABLES.map((name, i) => `t${i} as (delete from ${name})`).join(', ')} select 1`)
}

/** Rows as they are stored: a report has a package with a version once, and no version is an empty text. */
const reported = (rows: readonly Row[]) => {
  const seen = new Set<string>()
  return rows.filter((one) => {
    const key = JSON.stringify([one.name, one.version])
    return !seen.has(key) && seen.add(key)
  })
}

async function tell({ images, vias, posts, replaced, reads }: Story): Promise<Store> {
  await emptied()
  await app.sql`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips)
    select p.name, '', p.namespace, now() at time zone 'utc', p.node, p."isDead", '{}'
    from json_to_recordset(${JSON.stringify(PODS)}::text::json) p(name text, namespace text, node text, "isDead" boolean)`
  await app.sql`
    insert into service (svc_ip, svc_name, svc_namespace, time_stamp)
    select s.address, s.name, s.namespace, now() at time zone 'utc'
    from json_to_recordset(${JSON.stringify(SERVICES)}::text::json) s(name text, namespace text, address text)`
  await app.sql`
    insert into image (digest, repository, tags, digest_kind, first_seen, last_seen)
    select i.digest, i.repository, i.tags, 'repo', now(), now()
    from json_to_recordset(${JSON.stringify(images)}::text::json) i(digest text, repository text, tags text[])`
  const containers = images.flatMap(({ digest, containers }) => containers.map((one) => ({ ...one, digest })))
  await app.sql`
    insert into workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name,
      image_digest, container_kind, image_ref, security_context, pod_security, state, first_seen, last_seen)
    select 'primary', c.namespace, c.kind, c.workload, c.name, c.digest, 'regular', 'x', '{}', '{}',
           case when c.runs then 'running' else 'terminated' end, now() at time zone 'utc', now() at time zone 'utc'
    from json_to_recordset(${JSON.stringify(containers)}::text::json)
      c(namespace text, kind text, workload text, name text, digest text, runs boolean)`
  const payloads: Payload[] = []
  // Guesses are made only where nothing else names the image, so they come last.
  const order = [...posts].sort((a, b) => Number(viaOf(a[0]) === 'tag') - Number(viaOf(b[0]) === 'tag'))
  function viaOf(at: number): Via {
    return at < IMAGES ? 'own' : vias[at - IMAGES]![0]
  }
  const post = async ([at, source, kind, rows]: Story['posts'][number]) => {
    const via = viaOf(at)
    const of = at < IMAGES ? at : vias[at - IMAGES]![1]
    const image = images[of]
    const place = image?.containers[0]
    const named =
      via === 'index'
        ? { index_digest: digest(of) }
        : via === 'manifest'
          ? { platform_manifests: { 'linux/amd64': digest(of) } }
          : via === 'tag' && place !== undefined && image!.repository !== null
            ? {
                ...{ normal_repository: image!.repository, tag: image!.tags[0] ?? 'v1' },
                observed_in: [
                  { namespace: place.namespace, kind: place.kind, name: place.workload, container: place.name },
                ],
              }
            : {}
    const own = at < IMAGES ? digest(at) : digest(at + 32 - IMAGES)
    const kept = kind === 'sbom' ? rows : reported(rows)
    if (kind === 'sbom')
      await storeSbom(
        app,
        own,
        source,
        rows.map(({ name, ...fields }) => component(name, { ...fields })),
        named,
      )
    else
      await storeFindings(
        app,
        own,
        source,
        kept.map(({ name, version, purl, type }) =>
          finding('CVE-1', {
            ...{ package_name: name, installed_version: version ?? '', package_purl: purl, package_type: type },
          }),
        ),
        named,
      )
    const isGuess = via === 'tag' && 'tag' in named && image!.tags.includes((named as { tag: string }).tag)
    const known = payloads.findIndex((one) => one.digest === own && one.source === source && one.kind === kind)
    if (known >= 0) payloads.splice(known, 1)
    payloads.push({
      ...{ digest: own, source, kind, rows: kept, image: digest(of) },
      via: image === undefined && via !== 'index' ? 'none' : via === 'tag' && !isGuess ? 'none' : via,
    })
  }
  const read = async (most: number | null) => {
    if (most === null) return
    if (most === 1) {
      await app.sql`select * from read_packages('next', 1, 1000)`
      await app.sql`select mark_packages('next')`
    } else await readPackages({ ...app.deps, signal: new AbortController().signal } as never)
    await forgetPackages({ ...app.deps, signal: new AbortController().signal } as never)
  }
  for (const one of order) await post(one)
  await read(reads[0])
  for (const [n, rows] of replaced) {
    const one = order[n]
    if (one !== undefined) await post([one[0], one[1], one[2], rows])
  }
  await read(reads[1])
  return { images, payloads, pods: PODS, services: SERVICES }
}

const KEYS: Readonly<Record<string, (hit: Record<string, string>) => string>> = {
  package: ({ name, purl }) => name ?? purl!,
  image: ({ digest }) => digest!,
  repository: ({ repository }) => repository!,
  workload: ({ namespace, kind, name }) => `${namespace}/${kind}/${name}`,
  pod: ({ name }) => name!,
  service: ({ namespace, name, address }) => `${namespace}/${name}/${address}`,
  namespace: ({ namespace }) => namespace!,
  node: ({ name }) => name!,
}

async function search(q: string) {
  const answer = await app.get(`/search?${new URLSearchParams({ q, limit: '50' })}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

async function components(asked: Asked, limit: number) {
  const items = []
  const query: Record<string, string> = Object.fromEntries(
    Object.entries(asked).map(([key, value]) => [key, `${value}`]),
  )
  for (let after: string | null = ''; after !== null; ) {
    const answer = await app.get(`/components?${new URLSearchParams({ ...query, limit: `${limit}`, after })}`)
    assert.equal(answer.status, 200, answer.text)
    assert.ok(answer.json.items.length <= limit)
    items.push(...answer.json.items)
    after = answer.json.nextAfter
  }
  return items.map(({ inUse, inUseState, inUseDetail, ...item }: Record<string, unknown>) => {
    assert.deepEqual([inUse, inUseState], [null, 'unknown'], 'nobody watches the containers')
    assert.ok(inUseDetail)
    return item
  })
}

const name = text([...NAMES.slice(0, 6), ...GROUPED, 'nothing'])
const purl = text([...PURLS, 'pkg:maven/org.apache/log4j-core', 'pkg:npm/log4j', 'PKG:npm/%40log/log4j'])
const version = text(['1', '2', '9'])
const ASKED: fc.Arbitrary<Asked> = fc.oneof(
  ...[fc.record({ name }), fc.record({ purl }), fc.record({ name, running: fc.boolean() })],
  ...[fc.record({ name, version }), fc.record({ purl, version, running: fc.boolean() }), fc.record({ name, purl })],
)

test('search and components answer as a scan of everything stored would, whatever the job has read', async () => {
  const found = { hits: 0, items: 0 }
  await fc.assert(
    fc.asyncProperty(
      story,
      fc.subarray(QUERIES, { minLength: 12, maxLength: 12 }),
      fc.array(fc.tuple(ASKED, fc.integer({ min: 1, max: 5 })), { minLength: 6, maxLength: 6 }),
      async (told, queries, asked) => {
        const store = await tell(told)
        for (const q of queries) {
          const { hits, truncated, notCovered: missing, notRead } = await search(q)
          const got = hits.map((hit: Record<string, never>): Short => {
            const { type, running, match } = hit
            return [type!, KEYS[type!]!(hit), running!, match!]
          })
          const expected = hitsOf(store, q)
          assert.deepEqual(got, expected, `${q}`)
          assert.deepEqual([truncated, missing, notRead], [[], notCovered(store), 0])
          found.hits += got.length
        }
        for (const [question, limit] of asked) {
          const got = await components(question, limit)
          assert.deepEqual(got, componentsOf(store, question), JSON.stringify(question))
          found.items += got.length
        }
      },
    ),
    { numRuns: STORES, includeErrorInReport: true },
  )
  assert.ok(found.hits > STORES && found.items > STORES / 2, JSON.stringify(found))
})
