import assert from 'node:assert/strict'
import test from 'node:test'
import { ARTIFACTS } from '../../lib/profile/export/document.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { signature, storeAttestation, unverified } from '../support/attestations.ts'
import { FINDINGS, refresh, SBOM, type Told, tellWorkload } from '../support/exports.ts'
import { container, newDigest } from '../support/images.ts'
import { readPolicies } from '../support/policies.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { component, storeFindings, storeSbom } from '../support/supply-chain.ts'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

const ENV = { POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS }
const app = await startApp(ENV)
const products = await startApp({ ...ENV, WIRE_NAMES: 'kguardian', ANNOTATION_PREFIX: 'policies.other.test' }, app)
const impatient = await startApp({ ...ENV, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const get = (path: string, query = '', on = app) => on.get(path + query, { token })
const files = async (path: string, query = '', on = app): Promise<Record<string, Json>> => {
  const answer = await get(path, `?format=zip-manifest${query}`, on)
  assert.equal(answer.status, 200, answer.text)
  return Object.fromEntries(answer.json.documents.map((one: Json) => [one.artifact, one]))
}
const refusalsOf = async (path: string, query = '') => {
  const answer = await get(path, `?mode=enforce${query}`)
  assert.equal(answer.status, 409, answer.text)
  return Object.fromEntries(answer.json.refusals.map(({ artifact, reason }: Json) => [artifact, reason]))
}
const told = (fields: Told = {}) => tellWorkload(app, fields)

const whole = await told({ executed: ['/usr/bin/curl'] })

test('GET /workloads/{namespace}/{kind}/{name}/export 200: a stream of the objects that audit, and comments', async () => {
  const { status, headers, text } = await get(whole.path)
  assert.equal(status, 200, text)
  assert.equal(headers.get('content-type'), 'application/yaml')
  assert.deepEqual(
    ['mode', 'recorded'].map((name) => headers.get(`x-kguardian-export-${name}`)),
    ['audit', 'false'],
  )
  const objects = readPolicies(text)
  assert.deepEqual(
    objects.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`),
    [
      'kguardian.dev/v1alpha1 AuditNetworkPolicy',
      'kguardian.dev/v1alpha1 SeccompProfile',
      'kguardian.dev/v1alpha1 ImageTrustPolicy',
    ],
  )
  const { namespace } = whole.key
  for (const { metadata } of objects) {
    const annotations = metadata.annotations
    assert.deepEqual(Object.keys(annotations), Object.keys(annotations).sort())
    assert.deepEqual(
      ['applied-by-telemetry', 'export-mode', 'profile-revision', 'source-workload'].map(
        (key) => annotations[`kguardian.dev/${key}`],
      ),
      ['false', 'audit', 'unversioned', `${namespace}/Deployment/web`],
    )
    assert.match(annotations['kguardian.dev/generated-by'], /^telemetry-broker\/\d/)
    assert.match(annotations['kguardian.dev/generated-at'], /^\d{4}-.*\+00:00$/)
    assert.match(annotations['kguardian.dev/profile-hash'], /^fnv1a64:/)
    assert.equal(metadata.namespace, namespace)
  }
  const [network, seccomp, trust] = objects
  assert.equal(network.metadata.name, 'web-telemetry')
  assert.deepEqual(network.metadata.labels, { 'app.kubernetes.io/name': 'web' })
  assert.deepEqual(network.spec.podSelector, { matchLabels: { app: 'web' } })
  assert.equal(seccomp.spec.defaultAction, 'SCMP_ACT_LOG')
  assert.match(trust.metadata.name, /^web-telemetry-app-[0-9a-f]{8}$/)
  assert.ok(trust.metadata.annotations['kguardian.dev/source'])
  assert.deepEqual(trust.spec.images, ['registry.test/team/app'])
  assert.match(
    text,
    new RegExp(`^# telemetry export of ${namespace}/Deployment/web\n# mode: audit; profile unversioned`),
  )
  assert.match(text, /^# not recorded: /m)
  assert.match(text, /^# not included: ciliumnetworkpolicy \(withheld in audit mode/m)
  for (const artifact of ['securitycontext', 'sbom', 'vex'])
    assert.match(text, new RegExp(`^# ---- ${artifact} \\(.*; not part of the apply stream\\) ----$`, 'm'))
  for (const artifact of ['networkpolicy', 'seccompprofile', 'admission', 'sbom', 'vex'])
    assert.match(text, new RegExp(`^# telemetry export: ${artifact} \\(audit mode\\)\n# telemetry never applies`, 'm'))
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: a manifest of the files that enforce', async () => {
  const { status, headers, json } = await get(whole.path, '?mode=enforce&format=zip-manifest')
  assert.equal(status, 200)
  assert.equal(headers.get('content-type'), 'application/json')
  assert.equal(headers.get('x-kguardian-export-mode'), 'enforce')
  assert.deepEqual(Object.keys(json), ['workload', 'mode', 'generatedAt', 'profile', 'recorded', 'documents'])
  assert.deepEqual(json.workload, { clusterId: 'primary', ...whole.key })
  assert.deepEqual([json.mode, json.recorded, json.profile.revision], ['enforce', false, null])
  assert.match(json.generatedAt, /\+00:00$/)
  assert.deepEqual(
    json.documents.map(({ artifact, fileName, available, refused, reason, apiVersion, kind, contentType }: Json) => [
      ...[artifact, fileName, available, refused, reason, apiVersion, kind, contentType],
    ]),
    [
      ['networkpolicy', 'networkpolicy.yaml', 'networking.k8s.io/v1', 'NetworkPolicy', 'application/yaml'],
      ['ciliumnetworkpolicy', 'ciliumnetworkpolicy.yaml', 'cilium.io/v2', 'CiliumNetworkPolicy', 'application/yaml'],
      ['seccompprofile', 'seccompprofile.yaml', 'kguardian.dev/v1alpha1', 'SeccompProfile', 'application/yaml'],
      ['securitycontext', 'securitycontext.patch.yaml', null, null, 'application/yaml'],
      [...['sbom', `sbom-main-${whole.digest.slice(7, 19)}.cdx.json`, null, null], 'application/vnd.cyclonedx+json'],
      ['vex', 'vex.openvex.json', null, null, 'application/json'],
      [...['admission', 'admission.yaml', 'policies.kyverno.io/v1beta1', 'ImageValidatingPolicy'], 'application/yaml'],
    ].map(([artifact, fileName, apiVersion, kind, type]) => [
      ...[artifact, fileName, true, null, null, apiVersion, kind, type],
    ]),
  )
  const of = Object.fromEntries(json.documents.map((one: Json) => [one.artifact, one]))
  for (const one of json.documents) {
    assert.ok(one.applyWith.length > 0)
    if (one.apiVersion === null) continue
    const objects = readPolicies(one.content)
    assert.ok(objects.every(({ apiVersion, kind }) => apiVersion === one.apiVersion && kind === one.kind))
    assert.equal(one.applyWith, `kubectl apply -f ${one.fileName}`)
  }
  const spec = (artifact: string) => readPolicies(of[artifact].content)[0].spec
  assert.equal(spec('seccompprofile').defaultAction, 'SCMP_ACT_ERRNO')
  assert.deepEqual(spec('admission').validationActions, ['Deny'])
  const audited = await files(whole.path, '&artifacts=networkpolicy')
  assert.deepEqual(spec('networkpolicy'), readPolicies(audited.networkpolicy.content)[0].spec)
  assert.match(of.securitycontext.content, /pod-security\.kubernetes\.io\/enforce=restricted/)
  assert.match(of.securitycontext.applyWith, /^kubectl patch deployment web -n export-\d+ --type strategic/)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: a document that is not available has a reason and nulls', async () => {
  const { admission } = await files((await told({ isSigned: false })).path, '&artifacts=admission')
  assert.deepEqual(admission, {
    artifact: 'admission',
    fileName: 'admission.yaml',
    available: false,
    refused: null,
    reason:
      'no image of the workload has a verified signer of all its running digests (registry.test/team/app: not checked)',
    apiVersion: null,
    kind: null,
    mode: 'audit',
    contentType: null,
    content: null,
    applyWith: null,
    image: null,
  })
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: artifacts in the order of a bundle, in any case, each once', async () => {
  const asked = async (artifacts: string) =>
    (await get(whole.path, `?format=zip-manifest&artifacts=${encodeURIComponent(artifacts)}`)).json.documents.map(
      ({ artifact }: Json) => artifact,
    )
  assert.deepEqual(await asked('vex, SeccompProfile,vex,,VEX'), ['seccompprofile', 'vex'])
  assert.deepEqual(await asked(' '), ARTIFACTS)
  assert.deepEqual(await asked(''), ARTIFACTS)
  assert.equal((await get(whole.path, '?mode=%20&format=&artifacts=vex&unknown=x')).status, 200)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: with the names of the product', async () => {
  const one = await tellWorkload(products)
  const { text } = await get(one.path, '?mode=enforce', products)
  const objects = readPolicies(text)
  assert.deepEqual(
    objects.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`),
    [
      'networking.k8s.io/v1 NetworkPolicy',
      'cilium.io/v2 CiliumNetworkPolicy',
      'policies.other.test/v1alpha1 SeccompProfile',
      'policies.kyverno.io/v1beta1 ImageValidatingPolicy',
    ],
  )
  for (const { metadata } of objects) {
    assert.equal(metadata.annotations['policies.other.test/applied-by-kguardian'], 'false')
    assert.match(metadata.annotations['policies.other.test/generated-by'], /^kguardian-broker\//)
  }
  assert.equal(objects[0].metadata.name, 'web-kguardian')
  assert.match(text, /^# kguardian export of /)
  const { admission, vex } = await files(one.path, '', products)
  assert.equal(admission.apiVersion, 'policies.other.test/v1alpha1')
  assert.equal(JSON.parse(vex.content)['kguardian:draft'], true)
  assert.match(JSON.parse(vex.content)['@id'], /^https:\/\/policies\.other\.test\//)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: a policy for images accepts who signed them elsewhere in the namespace', async () => {
  const one = await told()
  const other = newDigest()
  const runs = (digest: string) =>
    app.post(
      '/pod/spec',
      {
        ...{ ...one.pod, pod_name: 'other-1', pod_ip: '10.8.0.1', workload_name: 'other' },
        containers: [container('main', digest)],
      },
      { token: TOKENS.BROKER_TOKEN_INGEST },
    )
  assert.equal((await runs(other)).status, 200)
  const unknown = await files(one.path, '&artifacts=admission')
  assert.match(unknown.admission.reason, /registry\.test\/team\/app: not checked, in namespace export-\d+/)
  await storeAttestation(app, other, { signatures: [signature({ san: 'https://signers.test/other' })] })
  const { admission } = await files(one.path, '&artifacts=admission&mode=enforce')
  assert.match(admission.content, /subject: https:\/\/signers\.test\/other/)
  assert.match(admission.content, /^# .*Other workloads of the namespace/m)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: no policy for more signers than the cluster accepts in one', async () => {
  const one = await told()
  const signedBy = (count: number) =>
    storeAttestation(app, one.digest, {
      signatures: Array.from({ length: count }, (_, n) => signature({ san: `https://signers.test/${n}` })),
    })
  await signedBy(32)
  assert.equal((await files(one.path, '&artifacts=admission')).admission.available, true)
  await signedBy(33)
  assert.match((await files(one.path, '&artifacts=admission')).admission.reason, /at most 32 authorities/)
  assert.equal((await files(one.path, '&artifacts=admission&mode=enforce')).admission.available, true)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: an SBOM for each image, within a bound', async () => {
  const one = await told({ isWatched: false })
  const [large, empty, unknown, pages] = [newDigest(), newDigest(), newDigest(), newDigest()]
  const containers = [
    container('main', one.digest),
    container('side', one.digest),
    container('empty', empty),
    container('unknown', unknown),
    container('y-pages', pages),
    container('z-large', large),
  ]
  await app.post('/pod/spec', { ...one.pod, containers }, { token: TOKENS.BROKER_TOKEN_INGEST })
  const many = (count: number) => Array.from({ length: count }, (_, i) => component(`part-${i}`))
  await storeSbom(app, large, 'operator-scanner', many(10_000))
  await storeSbom(app, empty, 'registry', [])
  // More than a page.
  await storeSbom(app, pages, 'registry', many(5_001))
  const { json } = await get(one.path, '?format=zip-manifest&artifacts=sbom')
  const byName = new Map<string, Json>(json.documents.map((document: Json) => [document.image.containers[0], document]))
  assert.deepEqual([...byName.keys()].sort(), ['empty', 'main', 'unknown', 'y-pages', 'z-large'])
  const main = byName.get('main')
  assert.deepEqual(main.image, {
    ...{ containers: ['main', 'side'], digest: one.digest, imageRef: 'registry.test/team/app:v1' },
    ...{ source: 'operator-scanner', sbomTrust: 'scanned', scannedAt: main.image.scannedAt, components: SBOM.length },
  })
  assert.match(main.image.scannedAt, /\+00:00$/)
  const document = JSON.parse(main.content)
  const alone = await app.get(`/images/${one.digest}/sbom/cyclonedx`, { token })
  assert.deepEqual(document, alone.json)
  assert.deepEqual(byName.get('unknown').image, {
    ...{ containers: ['unknown'], digest: unknown, imageRef: 'registry.test/team/app:v1' },
    ...{ source: null, sbomTrust: null, scannedAt: null, components: null },
  })
  assert.match(byName.get('unknown').reason, /no SBOM of this image is stored: its contents are not known/)
  assert.equal(byName.get('empty').available, true)
  assert.equal(byName.get('empty').image.components, 0)
  assert.match(byName.get('empty').applyWith, /0 components reported/)
  assert.deepEqual(JSON.parse(byName.get('empty').content).components, [])
  const { components } = JSON.parse(byName.get('y-pages').content)
  assert.deepEqual([components.length, components.at(-1)['bom-ref']], [5_001, 'c5000'])
  assert.equal(byName.get('z-large').available, false)
  assert.match(byName.get('z-large').reason, /has 10000 components, and 4996 are left of the 10000 of a bundle/)
  const { text } = await get(one.path, '?artifacts=sbom')
  assert.match(text, /^# ---- sbom \(CycloneDX SBOM .* 0 components reported; not part of the apply stream\) ----$/m)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: a draft of OpenVEX says what no container of the workload used', async () => {
  const { vex } = await files(whole.path, '&artifacts=vex')
  const document = JSON.parse(vex.content)
  assert.deepEqual(Object.keys(document), [
    ...['@context', '@id', 'author', 'role', 'timestamp', 'version', 'statements'],
    ...['telemetry:draft', 'telemetry:input_hash', 'telemetry_window'],
  ])
  assert.equal(document['@context'], 'https://openvex.dev/ns/v0.2.0')
  assert.equal(document.version, 1)
  assert.equal(document['telemetry:draft'], true)
  assert.deepEqual(Object.keys(document.telemetry_window), ['start', 'end', 'min_hours'])
  assert.equal(document.telemetry_window.end, document.timestamp)
  assert.ok(document.telemetry_window.start < document.telemetry_window.end)
  // curl ran, and files cannot tell of left-pad.
  const [statement, ...more] = document.statements
  assert.deepEqual(more, [])
  assert.deepEqual(
    { ...statement, status_notes: '' },
    {
      vulnerability: { name: 'CVE-2099-0001' },
      products: [
        {
          '@id': `pkg:oci/app@${whole.digest.replace(':', '%3A')}?repository_url=registry.test/team/app`,
          subcomponents: [{ '@id': 'pkg:deb/debian/libssl3@3.0.1' }],
        },
      ],
      status: 'not_affected',
      justification: 'vulnerable_code_not_in_execute_path',
      status_notes: '',
    },
  )
  assert.match(statement.status_notes, /^Draft: .* in main, watched from .*\+00:00 to .*\+00:00, at least 24 hours\.$/)
  const again = await files(whole.path, '&artifacts=vex')
  assert.equal(again.vex.content, vex.content)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: no statement of OpenVEX where anything is not known', async () => {
  const reasonOf = async (path: string) => (await files(path, '&artifacts=vex')).vex.reason
  assert.match(await reasonOf((await told({ isWatched: false })).path), /^no statement can be made/)
  const used = await told({ executed: ['/usr/bin/curl', '/usr/lib/libssl.so.3'] })
  assert.match(await reasonOf(used.path), /^no statement can be made/)
  const clean = await told()
  await storeFindings(app, clean.digest, 'operator-scanner', [])
  await refresh(app)
  assert.match(await reasonOf(clean.path), /^no finding of any image/)
  // A report that came after the last pass of the job may list other files.
  const changed = await told()
  assert.equal(await reasonOf(changed.path), null)
  await storeFindings(app, changed.digest, 'operator-scanner', FINDINGS.slice(0, 2))
  assert.match(await reasonOf(changed.path), /^no statement can be made/)
  await refresh(app)
  assert.equal(await reasonOf(changed.path), null)
  // A second container of the workload with the same image was not watched.
  await app.post(
    '/pod/spec',
    { ...changed.pod, containers: [container('main', changed.digest), container('more', changed.digest)] },
    { token: TOKENS.BROKER_TOKEN_INGEST },
  )
  assert.match(await reasonOf(changed.path), /^no statement can be made/)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: of the findings beyond the bound, and of the one that it cuts, OpenVEX says nothing', async () => {
  const one = await told()
  await storeFindings(app, one.digest, 'db-matcher', [])
  await refresh(app)
  // The last finding before the bound is in both reports, so the bound cuts it.
  for (const [source, first, last] of [
    ['operator-scanner', 1, 19_997],
    ['db-matcher', 19_997, 20_001],
  ] as const)
    await app.sql`
      insert into image_finding (digest, source, severity, vuln_id, package_name, installed_version, package_type, class,
                                 fixed_versions, cvss, file_paths)
      select ${one.digest}, ${source}, 1, 'CVE-2099-1' || lpad(n::text, 6, '0'), 'libssl3', '1', 'deb', 'os-pkgs', '{}', '{}', '{}'
      from generate_series(${first}::integer, ${last}::integer) n`
  const { vex } = await files(one.path, '&artifacts=vex')
  const { statements } = JSON.parse(vex.content)
  assert.equal(statements.at(-1).vulnerability.name, 'CVE-2099-1019996')
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: nothing is stored', async () => {
  await get(whole.path)
  const [row] = await app.sql`select count(*)::integer as exports from workload_profile_export`
  assert.equal(row!.exports, 0)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: what is not complete is audited all the same, and enforced where that is acknowledged', async () => {
  const one = await told({ capture: 'medium', flowsDaysAgo: 0, isSigned: true })
  const audited = await files(one.path)
  for (const artifact of ['networkpolicy', 'seccompprofile', 'admission']) assert.ok(audited[artifact].available)
  for (const yes of ['true', '1', 'YES', 'On']) {
    const { networkpolicy, seccompprofile } = await files(one.path, `&mode=enforce&acknowledgePartial=${yes}`)
    assert.equal(networkpolicy.kind, 'NetworkPolicy')
    assert.match(networkpolicy.content, /^# WARNING: /m)
    assert.match(seccompprofile.content, /^# WARNING: the capture is partial/m)
  }
  const fine = await files(one.path, '&mode=enforce&artifacts=securitycontext,sbom,vex')
  assert.deepEqual(Object.keys(fine), ['securitycontext', 'sbom', 'vex'])
})

test('GET /workloads/{namespace}/{kind}/{name}/export 200: a name that no label can have gives objects with valid names', async () => {
  const one = await told({ name: `Web_${'x'.repeat(70)}` })
  const { text } = await get(one.path, '?mode=enforce')
  const objects = readPolicies(text)
  assert.equal(objects.length, 4)
  for (const { metadata } of objects) {
    assert.match(metadata.name, /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/)
    assert.equal(metadata.labels, undefined)
  }
  assert.ok(objects[3].metadata.name.length <= 63)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 400: a parameter breaks a rule, as JSON with a code', async () => {
  for (const [query, says] of [
    ['artifacts=network', /artifacts: expected a list of networkpolicy, /],
    ['artifacts=vex,other', /artifacts/],
    ['artifacts=,', /artifacts/],
    ['artifacts=%20,%20', /artifacts/],
    ['mode=Audit', /mode: expected audit or enforce/],
    ['mode=block', /mode/],
    ['format=json', /format: expected yaml or zip-manifest/],
    ['format=YAML', /format/],
    ['record=true', /record: .*POST/],
    ['record=1', /record/],
    ['record=On', /record/],
  ] as const) {
    const { status, json, headers } = await get(whole.path, `?${query}`)
    assert.deepEqual(
      [status, json?.error, headers.get('content-type')],
      [400, 'bad_request', 'application/json'],
      query,
    )
    assert.match(json.message, says)
  }
  for (const path of [
    '/workloads/%20/Deployment/web',
    '/workloads/a%2Fb/Deployment/web',
    `/workloads/a/b/${'x'.repeat(254)}`,
  ]) {
    const { status, json } = await get(`${path}/export`)
    assert.deepEqual([status, json?.error], [400, 'bad_request'], path)
  }
  assert.equal((await get(whole.path, '?record=false&record_other=1&artifacts=vex')).status, 200)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 401: no token', async () => {
  assertUnauthorized(await app.get(whole.path))
})

test('GET /workloads/{namespace}/{kind}/{name}/export 404: nothing is known of the workload', async () => {
  for (const path of ['/workloads/nowhere/Deployment/web/export', whole.path.replace('Deployment', 'deployment')]) {
    const { status, json } = await get(path)
    assert.deepEqual([status, json?.error], [404, 'workload_not_found'])
  }
})

test('GET /workloads/{namespace}/{kind}/{name}/export 409: each object that would block what was not seen is refused, with the reason', async () => {
  const partial = await told({ capture: 'medium', flowsDaysAgo: 0 })
  const refusals = await refusalsOf(partial.path)
  assert.deepEqual(Object.keys(refusals).sort(), ['ciliumnetworkpolicy', 'networkpolicy', 'seccompprofile'])
  assert.match(refusals.networkpolicy, /traffic was not observed for 24 hours/)
  const alone = await app.get(
    `${partial.path.replace('/workloads', '/seccomp/profiles')}?defaultAction=SCMP_ACT_ERRNO`,
    {
      token,
    },
  )
  assert.equal(refusals.seccompprofile, alone.text.trim())
  const { json } = await get(partial.path, '?mode=enforce&artifacts=seccompprofile&format=zip-manifest')
  assert.deepEqual(Object.keys(json), ['error', 'message', 'refusals'])
  assert.equal(json.error, 'export_refused')
  assert.match((await refusalsOf((await told({ flowsDaysAgo: null })).path)).networkpolicy, /no flows were observed/)
  const mixed = await told()
  const unsigned = newDigest()
  const more = container('side', unsigned, { repository: 'registry.test/side', image: 'registry.test/side:v1' })
  await app.post(
    '/pod/spec',
    { ...mixed.pod, containers: [container('main', mixed.digest), more] },
    { token: TOKENS.BROKER_TOKEN_INGEST },
  )
  await storeAttestation(app, unsigned, { signatures: [unverified('no key')], repository: 'registry.test/side' })
  assert.deepEqual(Object.keys(await refusalsOf(mixed.path)), ['admission'])
  assert.match((await refusalsOf(mixed.path)).admission, /registry\.test\/side: unknown/)
  const acknowledged = await files(mixed.path, '&mode=enforce&acknowledgePartial=true&artifacts=admission')
  assert.match(acknowledged.admission.content, /^# not covered: registry\.test\/side/m)
})

test('GET /workloads/{namespace}/{kind}/{name}/export 503: the read budget is spent, or the database cancels', async () => {
  const one = await tellWorkload(impatient)
  const total = impatient.deps.budget.totalKib
  const release = await impatient.deps.budget.acquire(total - 1)
  const bytes = 8 * 1024 * 1024 + 20_000 * 2_560 + 500 * 4_096
  const needed = (more: number) => Math.ceil((bytes + more) / 1_024)
  assertShed(await get(one.path, '?artifacts=networkpolicy', impatient), needed(0), total)
  assertShed(await get(one.path, '?artifacts=vex', impatient), needed(20_000 * 512), total)
  assertShed(await get(one.path, '?artifacts=sbom', impatient), needed(SBOM.length * 4_096 * 3), total)
  const manifest = await get(one.path, '?artifacts=sbom&format=zip-manifest', impatient)
  assertShed(manifest, needed(SBOM.length * 4_096 * 2), total)
  release()
  await whileRefused(impatient.sql, 'image_attestation', async () =>
    assertDatabaseBusy(await get(one.path, '?artifacts=admission', impatient)),
  )
})
