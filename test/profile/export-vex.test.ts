/** The statements of an OpenVEX draft, compared with a model over random states of containers and packages. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { readUnused } from '../../lib/profile/export/vex-read.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'
import { finding, storeFindings } from '../support/supply-chain.ts'

const RUNS = depth(40, 1_500)
const PACKAGES = ['curl', 'libssl3', 'left-pad'] as const
const CONTAINERS = ['a', 'b', 'c'] as const
const WORKLOADS = ['web', 'api'] as const

const app = await startApp()
const { sql } = app
await sql`
  insert into cve_summary_state (refreshed_at, judged_until)
  values (now() at time zone 'utc', now() at time zone 'utc' + interval '1 day')`

const listed = fc.constantFrom('whole', 'whole', 'whole', 'cut', 'both', 'none')
const state = fc.record({
  isJudged: fc.constantFrom(true, true, true, true, false),
  reason: fc.constantFrom(null, null, null, null, 'capture_gap'),
  isSince: fc.constantFrom(true, true, true, false),
})
const scene = fc.record({
  /** Images of the workload `web`, each with its containers. */
  images: fc.array(
    fc.record({
      containers: fc.array(
        fc.record({ name: fc.constantFrom(...CONTAINERS), of: fc.constantFrom(...WORKLOADS), state }),
        {
          minLength: 1,
          maxLength: 3,
        },
      ),
      findings: fc.uniqueArray(
        fc.record({
          id: fc.constantFrom('CVE-2099-1', 'CVE-2099-2'),
          name: fc.constantFrom(...PACKAGES),
          version: fc.constantFrom('', '1'),
          source: fc.constantFrom('operator-scanner', 'db-matcher'),
          isObservable: fc.constantFrom(true, true, false),
          purl: fc.constantFrom(null, 'pkg:deb/x'),
        }),
        {
          minLength: 1,
          maxLength: 6,
          selector: ({ id, name, version, source }) => `${source} ${id} ${name} ${version}`,
        },
      ),
      listed: fc.tuple(listed, listed, listed),
      used: fc.array(fc.record({ name: fc.constantFrom(...PACKAGES), of: fc.constantFrom(...WORKLOADS) }), {
        maxLength: 2,
      }),
      hasNews: fc.constantFrom(false, false, false, true),
    }),
    { minLength: 1, maxLength: 3 },
  ),
})
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never

const isIn = (place: string, ...places: string[]) => places.includes(place)

/** Per image: vulnerability, package and version of each statement. */
function expected({ images }: Scene): string[] {
  return images.flatMap((image, i) => {
    const own = image.containers.filter(({ of }) => of === 'web')
    const isWatched = own.every(({ state: { isJudged, reason, isSince } }) => isJudged && reason === null && isSince)
    if (own.length === 0 || !isWatched || image.hasNews) return []
    const keys = new Set(image.findings.map(({ id, name, version }) => JSON.stringify([i, id, name, version])))
    return [...keys].filter((key) => {
      const [, id, name, version] = JSON.parse(key)
      const rows = image.findings.filter((one) => one.id === id && one.name === name && one.version === version)
      const place = image.listed[PACKAGES.indexOf(name)]!
      return (
        rows.every(({ isObservable }) => isObservable) &&
        isIn(place, 'whole') &&
        !image.used.some((one) => one.name === name && one.of === 'web')
      )
    })
  })
}

let runs = 0

async function store({ images }: Scene): Promise<{ namespace: string; digests: string[] }> {
  const namespace = `vex-${++runs}`
  const digests = images.map((_, i) => digestOf(`vex ${runs} ${i}`))
  for (const [i, image] of images.entries()) {
    const digest = digests[i]!
    await sql`insert into image values (${digest}, 'registry.test/app', '{}', 'repo', now(), now())`
    for (const source of ['operator-scanner', 'db-matcher']) {
      const findings = image.findings
        .filter((one) => one.source === source)
        .map(({ id, name, version, isObservable, purl }) =>
          finding(id, {
            ...{ package_name: name, installed_version: version, package_purl: purl },
            ...(isObservable ? { package_type: 'deb', class: 'os-pkgs' } : { package_type: 'npm', class: 'lang-pkgs' }),
          }),
        )
      await storeFindings(app, digest, source, findings)
    }
    const containers = new Map(image.containers.map((one) => [`${one.of} ${one.name}`, one]))
    image.containers = [...containers.values()]
    for (const {
      name,
      of,
      state: { isJudged, reason, isSince },
    } of image.containers) {
      await sql`
        insert into workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest,
                                        container_kind, image_ref, security_context, pod_security, first_seen, last_seen)
        values ('primary', ${namespace}, 'Deployment', ${of}, ${name}, ${digest}, 'regular', 'app:v1', '{}', '{}', now(), now())`
      if (isJudged)
        await sql`
          insert into container_use (image_digest, pod_namespace, workload_kind, workload_name, container_name, cluster_id, reason,
                                     observed_since)
          values (${digest}, ${namespace}, 'Deployment', ${of}, ${name}, 'primary', ${reason},
                  ${isSince ? '2026-01-01' : null}::text::timestamp)`
    }
    for (const { name, of } of image.used)
      await sql`
        insert into package_use
        values (${digest}, ${name}, ${namespace}, 'Deployment', ${of}, 'a', 'primary', true) on conflict do nothing`
    const names = (...places: string[]) =>
      `{${PACKAGES.filter((_, p) => isIn(image.listed[p]!, ...places)).map((name) => `"${name}"`)}}`
    await sql`
      insert into summary_image
      values (${digest}, payloads_of(${digest}), ${names('whole', 'both')}::text::text[], ${names('cut', 'both')}::text::text[])
      on conflict (image_digest) do update set
        payloads = excluded.payloads, whole_packages = excluded.whole_packages, cut_packages = excluded.cut_packages`
    await sql`delete from use_news where image_digest = ${digest}`
    if (image.hasNews) await sql`insert into use_news (image_digest, is_judged) values (${digest}, false)`
  }
  return { namespace, digests }
}

test('a statement is made exactly where all containers of the workload prove that the package is not used', async () => {
  await fc.assert(
    fc.asyncProperty(scene, async (told) => {
      const { namespace, digests } = await store(told)
      const found = await readUnused(app.db.read, { namespace, kind: 'Deployment', name: 'web' })
      const statements = found.images.flatMap(({ digest, findings }) =>
        findings.map(([id, name, version]) => JSON.stringify([digests.indexOf(digest), id, name, version])),
      )
      assert.deepEqual(statements.sort(), expected(told).sort())
      const own = told.images.filter(({ containers }) => containers.some(({ of }) => of === 'web'))
      assert.equal(
        found.hasFindings,
        own.some(({ findings }) => findings.length > 0),
      )
      for (const { digest, containers } of found.images)
        assert.deepEqual(
          containers,
          told.images[digests.indexOf(digest)]!.containers.flatMap(({ name, of }) => (of === 'web' ? name : [])).sort(),
        )
    }),
    { numRuns: RUNS },
  )
})

test('without a whole pass of the job a short while ago nothing is said', async () => {
  const told: Scene = {
    images: [
      {
        containers: [{ name: 'a', of: 'web', state: { isJudged: true, reason: null, isSince: true } }],
        findings: [
          { id: 'CVE-2099-1', name: 'curl', version: '1', source: 'db-matcher', isObservable: true, purl: null },
        ],
        ...{ listed: ['whole', 'none', 'none'], used: [], hasNews: false },
      },
    ],
  }
  const { namespace } = await store(told)
  const countOf = async () =>
    (await readUnused(app.db.read, { namespace, kind: 'Deployment', name: 'web' })).images.length
  assert.equal(await countOf(), 1)
  await sql`update cve_summary_state set judged_until = now() at time zone 'utc' - interval '1 second'`
  assert.equal(await countOf(), 0)
})
