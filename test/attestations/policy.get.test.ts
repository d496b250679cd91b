import assert from 'node:assert/strict'
import http from 'node:http'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import { INITIAL_BYTES, MAX_CONTAINERS, MAX_POLICY_BYTES } from '../../lib/admission/index.ts'
import { kib } from '../../lib/http/charge.ts'
import { close, listen } from '../../lib/http/server/listen.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { signature, statement, storeAttestation, unverified } from '../support/attestations.ts'
import { onlyFull } from '../support/depth.ts'
import { assertTaken } from '../support/engines.ts'
import { age, container, newDigest, newNamespace, replica } from '../support/images.ts'
import { commentsOf, type Json, readPolicies } from '../support/policies.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked, whileRefused } from '../support/routes.ts'
import { turnsOf } from '../support/turns.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian', ANNOTATION_PREFIX: 'policies.other.test' }, app)
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' })
const impatient = await startApp({ BROKER_READ_ACQUIRE_WAIT_MS: '0' })
const crowded = await startApp()
const token = TOKENS.BROKER_TOKEN_READ

type App = typeof app
type Result = Parameters<typeof storeAttestation>[2]

const PEM = '-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8nXRh950IZbRj8Ra\n-----END PUBLIC KEY-----'
const GITHUB = 'https://token.actions.githubusercontent.com'
const WORKFLOW = 'https://github.com/team/app/.github/workflows/release.yml'
const V1 = 'https://slsa.dev/provenance/v1'
const V02 = 'https://slsa.dev/provenance/v0.2'
const by = (san: string) => signature({ issuer: 'https://issuer.test', san })
const withKey = (keyPem?: string) =>
  signature({
    signerKind: 'key',
    issuer: undefined,
    san: undefined,
    keyFingerprint: 'ab'.repeat(32),
    ...(keyPem ? { keyPem } : {}),
  } as never)

/** Runs an image of a repository and stores its result, unless that is null. Resolves to its digest. */
async function runs(
  namespace: string,
  repository: string | null,
  result: Result | null = {},
  fields: Record<string, unknown> = {},
  on: App = app,
) {
  const digest = newDigest()
  const one = container('app', digest, { repository, image: `${repository}:v1`, ...fields })
  assert.equal(
    (await on.post('/pod/spec', replica(namespace, [one], { workload_name: `w-${digest.slice(7, 15)}` }))).status,
    200,
  )
  if (result) await storeAttestation(on, digest, { signatures: [by('https://ci.test/app')], ...result })
  return digest
}

const path = (query: Record<string, string>) => `/attestations/policy?${new URLSearchParams(query)}`
const ask = (query: Record<string, string>, on: App = app) => on.get(path(query))

/** The policies of a 200 answer, read alike by every parser and accepted by every engine, and their comments. */
async function policies(query: Record<string, string>, on: App = app) {
  const answer = await ask(query, on)
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.headers.get('content-type'), 'application/yaml')
  const all = readPolicies(answer.text)
  for (const policy of all) assertTaken(policy)
  return { text: answer.text, all, comments: (opening: string) => commentsOf(answer.text, opening) }
}

/**
 * Inserts containers with images of their own by SQL. `each` returns the repository and verified signatures of the
 * `n`th, or null for no result.
 */
async function crowd(
  on: App,
  namespace: string,
  count: number,
  each: (n: number) => { repository: string; signatures: object[] | null },
) {
  const rows = Array.from({ length: count }, (_, n) => {
    const { signatures, ...row } = each(n)
    return {
      digest: newDigest(),
      name: `w-${n}`,
      signatures: signatures && JSON.stringify(signatures),
      reference: `${row.repository}:v1`,
      ...row,
    }
  })
  for (let at = 0; at < rows.length; at += 500) {
    await on.sql`
      with r as materialized (
        select * from json_to_recordset(${JSON.stringify(rows.slice(at, at + 500))}::text::json)
          as (digest text, name text, signatures text, reference text, repository text)),
      i as (insert into image select digest, repository, '{}', 'repo', now(), now() from r),
      a as (insert into image_attestation
            select digest, repository, 'verified', null, null, null, null, signatures, '[]', signatures, '[]', '[]', '[]', '', now(), now()
            from r where signatures is not null)
      insert into workload_container
      select 'primary', ${namespace}, 'Deployment', name, 'app', digest, 'regular', reference, '{}', '{}', null, null, null, null, now(), now() from r`
  }
  return rows
}

const identitiesOf = (policy: Json) => policy.spec.attestors.map((one: Json) => one.cosign.keyless.identities[0])

test('GET /attestations/policy 200: comments alone when nothing runs', async () => {
  const { text, all } = await policies({})
  assert.deepEqual([all, text.split('\n').every((line) => line === '' || line.startsWith('# '))], [[], true])
})

test('GET /attestations/policy 200: a Kyverno policy for a covered repository', async () => {
  const namespace = newNamespace()
  const digest = await runs(namespace, 'registry.test/team/shop_app')
  const { text, all, comments } = await policies({ namespace })
  const [{ metadata, spec, ...about }, ...others] = all
  assert.deepEqual([about, others], [{ apiVersion: 'policies.kyverno.io/v1beta1', kind: 'ImageValidatingPolicy' }, []])
  assert.match(metadata.name, /^kguardian-signed-shop-app-[0-9a-f]{8}$/)
  assert.deepEqual(Object.keys(metadata.annotations), ['kguardian.dev/generated-by', 'kguardian.dev/source'])
  assert.deepEqual(spec, {
    validationActions: ['Audit'],
    matchConstraints: {
      resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['pods'] }],
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    },
    autogen: { podControllers: { controllers: [] } },
    matchImageReferences: ['', ':*', '@*'].map((end) => ({ glob: `registry.test/team/shop_app${end}` })),
    validationConfigurations: { mutateDigest: false, verifyDigest: false },
    attestors: [
      {
        name: 'a0',
        cosign: { keyless: { identities: [{ issuer: 'https://issuer.test', subject: 'https://ci.test/app' }] } },
      },
    ],
    validations: ['containers', 'initContainers', 'ephemeralContainers'].map((list, i) => ({
      expression: `!has(images.${list}) || images.${list}.map(image, verifyImageSignatures(image, [attestors.a0])).all(count, count > 0)`,
      message: `An image of ${['a container', 'an init container', 'an ephemeral container'][i]} is not signed by any of the signers of this policy`,
    })),
  })
  assert.deepEqual(comments('identity:'), [
    `identity: issuer https://issuer.test, subject https://ci.test/app verified ${digest.slice(7, 19)}`,
  ])
  for (const opening of ['REVIEW EVERY IDENTITY', 'A signer that signed']) assert.equal(comments(opening).length, 1)
  assert.deepEqual(comments('not covered:'), [])
  assert.ok(comments('')[0]!.includes(`namespace ${namespace}`) && comments('')[0]!.includes('policy-engine-a'))
  assert.doesNotMatch(text, /^---/)
})

test('GET /attestations/policy 200: the defaults are audit, Kyverno and the whole cluster', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/default')
  const { text } = await policies({ namespace })
  for (const query of [
    { format: 'policy-engine-a' },
    { format: 'kyverno' },
    { format: ' kyverno\t' },
    { mode: 'audit' },
    { mode: '' },
  ])
    assert.equal((await policies({ namespace, ...query })).text, text, JSON.stringify(query))
  for (const query of [{}, { namespace: '' }, { namespace: ' ' }]) {
    const { all } = await policies(query)
    assert.ok(
      all.some(({ spec }) => spec.matchImageReferences.some(({ glob }: Json) => glob === 'registry.test/team/default')),
    )
  }
})

test('GET /attestations/policy 200: input accepts both names of a format; answers use the configured one', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/named')
  await runs(namespace, 'registry.test/team/named', {}, {}, products)
  for (const [ours, theirs, kind] of [
    ['policy-engine-a', 'kyverno', 'ImageValidatingPolicy'],
    ['policy-engine-b', 'policy-controller', 'ClusterImagePolicy'],
    ['native', 'kguardian', 'ImageTrustPolicy'],
  ] as const) {
    const one = await policies({ namespace, format: ours })
    assert.equal((await policies({ namespace, format: theirs })).text, one.text)
    assert.equal(one.all[0].kind, kind)
    assert.match(one.comments('')[0]!, new RegExp(`: ${ours} \\(`))
    const shown = await policies({ namespace, format: ours }, products)
    assert.match(shown.comments('')[0]!, new RegExp(`: ${theirs} \\(`))
    assert.deepEqual(Object.keys(shown.all[0].metadata.annotations), [
      'policies.other.test/generated-by',
      'policies.other.test/source',
    ])
  }
})

test('GET /attestations/policy 200: enforce denies, and pins digests', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/enforced')
  const [kyverno] = (await policies({ namespace, mode: 'enforce' })).all
  assert.deepEqual(
    [kyverno.spec.validationActions, kyverno.spec.validationConfigurations],
    [['Deny'], { mutateDigest: true, verifyDigest: true }],
  )
  assert.equal((await policies({ namespace, mode: 'enforce', format: 'policy-engine-b' })).all[0].spec.mode, 'enforce')
})

test('GET /attestations/policy 200: a policy of policy-controller', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/b')
  await runs(namespace, 'docker.io/library/nginx', {}, { image: 'nginx' })
  const { all, comments } = await policies({ namespace, format: 'policy-engine-b' })
  const [{ metadata, ...policy }, ...others] = all
  assert.deepEqual(others, [])
  assert.deepEqual(policy, {
    apiVersion: 'policy.sigstore.dev/v1beta1',
    kind: 'ClusterImagePolicy',
    spec: {
      mode: 'warn',
      images: ['index.docker.io/library/nginx', 'registry.test/team/b'].flatMap((name) => [
        { glob: `${name}:**` },
        { glob: `${name}@**` },
      ]),
      authorities: [
        { name: 'a0', keyless: { identities: [{ issuer: 'https://issuer.test', subject: 'https://ci.test/app' }] } },
      ],
    },
  })
  assert.ok(comments('').some((line) => line.includes('policy.sigstore.dev/include=true')))
})

test('GET /attestations/policy 200: a policy of the evaluator, for a namespace or the cluster', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/native')
  const { all, comments } = await policies({ namespace, format: 'native' })
  const [{ metadata, ...policy }] = all
  assert.equal(metadata.namespace, namespace)
  assert.deepEqual(policy, {
    apiVersion: 'kguardian.dev/v1alpha1',
    kind: 'ImageTrustPolicy',
    spec: {
      images: ['registry.test/team/native'],
      authorities: [{ name: 'a0', keyless: { issuer: 'https://issuer.test', subject: 'https://ci.test/app' } }],
    },
  })
  assert.equal(
    comments('').some((line) => line.includes('policy.sigstore.dev')),
    false,
  )
  const cluster = (await policies({ format: 'native' })).all
  assert.ok(cluster.length > 0)
  for (const one of cluster)
    assert.deepEqual([one.kind, one.metadata.namespace], ['ClusterImageTrustPolicy', undefined])
})

test('GET /attestations/policy 200: a key signer becomes its PEM, in every format', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/key', { signatures: [withKey(`${PEM}\n\n`)] })
  const of = async (format: string) => (await policies({ namespace, format })).all[0].spec
  assert.deepEqual((await of('kyverno')).attestors, [{ name: 'a0', cosign: { key: { data: `${PEM}\n` } } }])
  assert.deepEqual((await of('policy-controller')).authorities, [{ name: 'a0', key: { data: `${PEM}\n` } }])
  assert.deepEqual((await of('native')).authorities, [{ name: 'a0', key: { publicKey: `${PEM}\n` } }])
})

test('GET /attestations/policy 200: a key with other line ends is the same key', async () => {
  const namespace = newNamespace()
  for (const pem of [PEM, PEM.replaceAll('\n', '\r\n')])
    await runs(namespace, 'registry.test/team/crlf', { signatures: [withKey(pem)] })
  await runs(namespace, 'registry.test/team/crlf-too', { signatures: [withKey(PEM.replaceAll('\n', '\r\n'))] })
  const { all, comments } = await policies({ namespace })
  assert.deepEqual(
    [all.length, all[0].spec.attestors, comments('identity:').length],
    [1, [{ name: 'a0', cosign: { key: { data: `${PEM}\n` } } }], 1],
  )
})

test('GET /attestations/policy 200: keyless signers come before keys', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/many', { signatures: [withKey(PEM), by('https://ci.test/b')] })
  await runs(namespace, 'registry.test/team/many', { signatures: [by('https://ci.test/a')] })
  const [{ spec }] = (await policies({ namespace })).all
  assert.deepEqual(
    spec.attestors.map(({ name, cosign }: Json) => [name, cosign.keyless?.identities[0].subject ?? 'key']),
    [
      ['a0', 'https://ci.test/a'],
      ['a1', 'https://ci.test/b'],
      ['a2', 'key'],
    ],
  )
  assert.ok(spec.validations[0].expression.includes('[attestors.a0, attestors.a1, attestors.a2]'))
})

test('GET /attestations/policy 200: a GitHub workflow that signed for a tag is accepted for any tag', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/tagged', {
    signatures: [signature({ issuer: GITHUB, san: `${WORKFLOW}@refs/tags/v1` })],
  })
  await runs(namespace, 'registry.test/team/tagged', {
    signatures: [signature({ issuer: GITHUB, san: `${WORKFLOW}@refs/tags/v2` })],
  })
  const { all, comments } = await policies({ namespace })
  const [identity, ...others] = identitiesOf(all[0])
  assert.deepEqual([identity.issuer, others, identity.subject], [GITHUB, [], undefined])
  assert.match(`${WORKFLOW}@refs/tags/v3`, new RegExp(identity.subjectRegExp))
  for (const other of [
    `${WORKFLOW}@refs/heads/main`,
    `${WORKFLOW.replace('.yml', 'xyml')}@refs/tags/v1`,
    `https://evil.test/${WORKFLOW}@refs/tags/v1`,
  ])
    assert.doesNotMatch(other, new RegExp(identity.subjectRegExp))
  assert.match(
    comments('identity:')[0]!,
    /release\.yml@refs\/tags\/\* \(any tag\) verified [0-9a-f]{12}, [0-9a-f]{12}$/,
  )
  const branch = newNamespace()
  await runs(branch, 'registry.test/team/branch', {
    signatures: [signature({ issuer: GITHUB, san: `${WORKFLOW}@refs/heads/main` })],
  })
  assert.deepEqual(identitiesOf((await policies({ namespace: branch })).all[0]), [
    { issuer: GITHUB, subject: `${WORKFLOW}@refs/heads/main` },
  ])
})

for (const type of [V1, V02]) {
  test(`GET /attestations/policy 200: provenance ${type.split('/').at(-1)} of every image is required`, async () => {
    const namespace = newNamespace()
    const repository = `registry.test/slsa/${type.split('/').at(-1)}`
    const provenance = statement({ issuer: 'https://issuer.test', san: 'https://ci.test/app', predicateType: type })
    for (let i = 0; i < 2; i++) await runs(namespace, repository, { attestations: [provenance] })
    const [kyverno] = (await policies({ namespace })).all
    assert.deepEqual(kyverno.spec.attestations, [{ name: 'p0', intoto: { type } }])
    assert.equal(kyverno.spec.validations.length, 6)
    const expression = 'verifyAttestationSignatures(image, attestations.p0, [attestors.a0])'
    assert.equal(kyverno.spec.validations.filter((one: Json) => one.expression.includes(expression)).length, 3)
    const [signed, attested, ...others] = (await policies({ namespace, format: 'policy-engine-b' })).all
    assert.deepEqual(
      [attested.metadata.name, attested.spec.images, others],
      [`${signed.metadata.name}-provenance`, signed.spec.images, []],
    )
    assert.deepEqual(
      [signed.spec.authorities[0].attestations, attested.spec.authorities[0].attestations],
      [undefined, [{ name: 'p0', predicateType: type }]],
    )
    const [native] = (await policies({ namespace, format: 'native' })).all
    assert.deepEqual(native.spec.attestations, [{ predicateType: type }])
    await runs(namespace, repository)
    assert.equal((await policies({ namespace })).all[0].spec.attestations, undefined)
  })
}

test('GET /attestations/policy 200: repositories without coverage are named with the reason, and are in no policy', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/whole')
  await runs(namespace, 'registry.test/team/half')
  await runs(namespace, 'registry.test/team/half', { signatures: [] })
  await runs(namespace, 'registry.test/team/fresh', null)
  await runs(namespace, 'registry.test/team/key', { signatures: [withKey()] })
  await runs(namespace, 'registry.test/team/broken', {
    verdict: 'invalid',
    reason: 'bad_signature',
    signatures: [unverified('bad_signature')],
  })
  await runs(namespace, 'registry.test/team/**')
  for (const format of ['policy-engine-a', 'policy-engine-b', 'native']) {
    const { all, text, comments } = await policies({ namespace, format })
    assert.equal(all.length, 1)
    assert.equal(JSON.stringify(all).includes('/half'), false)
    assert.deepEqual(comments('not covered:'), [
      'not covered: registry.test/team/** (no policy can name it)',
      'not covered: registry.test/team/broken (invalid)',
      'not covered: registry.test/team/fresh (not checked)',
      'not covered: registry.test/team/half (unsigned)',
      'not covered: registry.test/team/key (only a key whose PEM is unknown)',
    ])
    assert.ok(text.includes('registry.test/team/whole'))
  }
})

test('GET /attestations/policy 200: only comments when nothing is covered', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/nothing', { signatures: [] })
  for (const format of ['policy-engine-a', 'policy-engine-b', 'native']) {
    const { all, text, comments } = await policies({ namespace, format })
    assert.deepEqual(
      [all, comments('not covered:').length, text.split('\n').filter((line) => line !== '' && !line.startsWith('# '))],
      [[], 1, []],
    )
  }
})

test('GET /attestations/policy 200: repositories with the same signers share a policy', async () => {
  const namespace = newNamespace()
  for (const name of ['zeta', 'alpha']) await runs(namespace, `registry.test/shared/${name}`)
  await runs(namespace, 'registry.test/shared/apart', { signatures: [by('https://ci.test/apart')] })
  const { all, text } = await policies({ namespace, format: 'native' })
  assert.deepEqual(
    all.map(({ spec }) => spec.images),
    [['registry.test/shared/alpha', 'registry.test/shared/zeta'], ['registry.test/shared/apart']],
  )
  assert.equal(text.match(/^---$/gm)!.length, 1)
})

test('GET /attestations/policy 200: every spelling of a Docker Hub image, and the spellings of pod specs', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'docker.io/library/nginx', {}, { image: 'nginx' })
  await runs(namespace, 'docker.io/nginx', {}, { image: `mirror.test:5000/hub/nginx:1@${newDigest()}` })
  await runs(namespace, null, {}, { image: 'registry-1.docker.io/library/nginx:1.27' })
  await runs(namespace, 'docker.io/library/nginx', {}, { image: 'nginx*' })
  const { all } = await policies({ namespace })
  assert.equal(all.length, 1)
  const names = [
    'nginx',
    'library/nginx',
    'docker.io/nginx',
    'docker.io/library/nginx',
    'index.docker.io/nginx',
    'index.docker.io/library/nginx',
  ]
  const globs = [...names, 'mirror.test:5000/hub/nginx', 'registry-1.docker.io/library/nginx'].flatMap((name) => [
    name,
    `${name}:*`,
    `${name}@*`,
  ])
  assert.deepEqual(
    all[0].spec.matchImageReferences.map(({ glob }: Json) => glob),
    globs.sort(),
  )
  const [native] = (await policies({ namespace, format: 'native' })).all
  assert.deepEqual(native.spec.images, [
    'docker.io/library/nginx',
    'docker.io/nginx',
    'registry-1.docker.io/library/nginx',
  ])
})

test('GET /attestations/policy 200: a Kyverno policy for a namespace matches that namespace alone', async () => {
  const [namespace, other] = [newNamespace(), newNamespace()]
  for (const one of [namespace, other])
    await runs(one, 'registry.test/scope/app', { signatures: [by(`https://ci.test/${one}`)] })
  const named = async (query: Record<string, string>) => (await policies({ mode: 'enforce', ...query })).all
  const [[ours], [theirs]] = [await named({ namespace }), await named({ namespace: other })]
  for (const [policy, one] of [
    [ours, namespace],
    [theirs, other],
  ]) {
    assert.deepEqual(policy.spec.matchConstraints.namespaceSelector, {
      matchLabels: { 'kubernetes.io/metadata.name': one },
    })
    assert.deepEqual(identitiesOf(policy), [{ issuer: 'https://issuer.test', subject: `https://ci.test/${one}` }])
    // Kyverno derives policies for pod controllers, which would lose the selector.
    assert.deepEqual(policy.spec.autogen, { podControllers: { controllers: [] } })
  }
  assert.notEqual(ours.metadata.name, theirs.metadata.name, 'to apply the one must not replace the other')
  const cluster = (await policies({})).all.find(({ spec }) => JSON.stringify(spec).includes('registry.test/scope/app'))
  assert.deepEqual([cluster.spec.matchConstraints.namespaceSelector, cluster.spec.autogen], [undefined, undefined])
  assert.equal([ours.metadata.name, theirs.metadata.name].includes(cluster.metadata.name), false)
})

test('GET /attestations/policy 200: two repositories with the same name in pods share one policy that accepts either signer', async () => {
  const namespace = newNamespace()
  const written = 'short.test/team/twice'
  await runs(namespace, 'registry.test/twice/a', { signatures: [by('https://ci.test/a')] }, { image: `${written}:1` })
  await runs(namespace, 'registry.test/twice/b', { signatures: [by('https://ci.test/b')] }, { image: `${written}:2` })
  await runs(namespace, 'registry.test/twice/c', { signatures: [by('https://ci.test/c')] })
  for (const format of ['policy-engine-a', 'policy-engine-b', 'native']) {
    const { all } = await policies({ namespace, format })
    assert.equal(all.length, 2, format)
    const subjectsOf = ({ spec }: Json) =>
      (spec.attestors ?? spec.authorities).map((one: Json) => {
        const keyless = (one.cosign ?? one).keyless
        return (keyless.identities?.[0] ?? keyless).subject
      })
    assert.deepEqual(all.map(subjectsOf), [['https://ci.test/a', 'https://ci.test/b'], ['https://ci.test/c']])
    if (format !== 'native')
      assert.equal(all.filter((policy) => JSON.stringify(policy).includes(`"${written}:`)).length, 1)
  }
})

test('GET /attestations/policy 200: a repository without coverage also excludes another one with the same name in pods', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/half/a', {}, { image: 'short.test/half:1' })
  await runs(namespace, 'registry.test/half/b', { signatures: [] }, { image: 'short.test/half:2' })
  for (const format of ['policy-engine-a', 'policy-engine-b', 'native']) {
    const { all, comments } = await policies({ namespace, format })
    assert.deepEqual(all, [])
    assert.deepEqual(comments('not covered:'), [
      'not covered: registry.test/half/a (pods write the same name for registry.test/half/b, which is not covered)',
      'not covered: registry.test/half/b (unsigned)',
    ])
  }
  assert.equal((await ask({ namespace, mode: 'enforce' })).status, 409)
})

test('GET /attestations/policy 200: provenance is required for a name only if every image with that name has it', async () => {
  const namespace = newNamespace()
  const provenance = statement({ issuer: 'https://issuer.test', san: 'https://ci.test/app', predicateType: V1 })
  await runs(namespace, 'registry.test/stated/a', { attestations: [provenance] }, { image: 'short.test/stated:1' })
  await runs(
    namespace,
    'registry.test/stated/b',
    { signatures: [by('https://ci.test/b')] },
    { image: 'short.test/stated:2' },
  )
  const { all } = await policies({ namespace })
  assert.deepEqual([all.length, all[0].spec.attestations], [1, undefined])
})

test('GET /attestations/policy 200: for Kyverno, any tag of an image also means any image in a registry of that name with a port', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'docker.io/library/depot', { signatures: [by('https://ci.test/hub')] }, { image: 'depot:2' })
  await runs(namespace, 'depot:5000/team/app', { signatures: [by('https://ci.test/team')] })
  const { all } = await policies({ namespace })
  assert.deepEqual(all.map(identitiesOf), [
    ['hub', 'team'].map((name) => ({ issuer: 'https://issuer.test', subject: `https://ci.test/${name}` })),
  ])
})

test('GET /attestations/policy 200: policy-controller gets the names of pods in its own spelling', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'docker.io/library/written', {}, { image: 'written' })
  await runs(namespace, 'docker.io/library/written', {}, { image: 'mirror.test:5000/hub/written:1' })
  const { all } = await policies({ namespace, format: 'policy-engine-b' })
  assert.deepEqual(
    all[0].spec.images.map(({ glob }: Json) => glob),
    ['index.docker.io/library/written', 'mirror.test:5000/hub/written'].flatMap((name) => [`${name}:**`, `${name}@**`]),
  )
})

test('GET /attestations/policy 200: policies of policy-controller also accept the signers of the same names in other namespaces, and say so', async () => {
  const [namespace, other, third] = [newNamespace(), newNamespace(), newNamespace()]
  await runs(namespace, 'registry.test/wide/app', { signatures: [by('https://ci.test/here')] })
  await runs(namespace, 'docker.io/library/wide', {}, { image: 'wide:1' })
  await runs(other, 'registry.test/wide/app', { signatures: [by('https://ci.test/there')] })
  // Pods match by what they write, whatever the inventory says.
  await runs(
    third,
    'mirror.test/other',
    { signatures: [by('https://ci.test/mirror')] },
    { image: 'docker.io/wide@sha256:0' },
  )
  await runs(third, 'registry.test/wide/alone', { signatures: [by('https://ci.test/alone')] })
  await runs(third, 'elsewhere.test/wide/app', { signatures: [] })
  await runs(third, 'registry.test/wide/app', { signatures: [] }, { state: 'terminated' })
  const query = { namespace, format: 'policy-engine-b' }
  const { all, comments } = await policies(query)
  assert.deepEqual(
    all.map(({ spec }) => [
      spec.images[0].glob,
      spec.authorities.map((one: Json) => one.keyless.identities[0].subject),
    ]),
    [
      ['index.docker.io/library/wide:**', ['https://ci.test/app', 'https://ci.test/mirror']],
      ['registry.test/wide/app:**', ['https://ci.test/here', 'https://ci.test/there']],
    ],
  )
  assert.equal(comments('CLUSTER-WIDE').length, 1)
  assert.deepEqual(comments('images of the same names run in'), [
    `images of the same names run in namespaces ${other}, ${third}, too`,
  ])
  const refused = await ask({ ...query, mode: 'enforce' })
  assert.equal(refused.status, 409)
  assert.equal(
    refused.text,
    `an enforcing ClusterImagePolicy binds the whole cluster, and images of the same names run in namespaces ${other}, ${third}, too. acknowledgeClusterWide=true generates it all the same`,
  )
  const acknowledged = await policies({ ...query, mode: 'enforce', acknowledgeClusterWide: 'true' })
  assert.deepEqual(
    acknowledged.all.map(({ spec }) => [spec.mode, spec.authorities.length]),
    [
      ['enforce', 2],
      ['enforce', 2],
    ],
  )
  assert.equal((await ask({ ...query, mode: 'enforce', acknowledgePartial: 'true' })).status, 409)
  for (const format of ['policy-engine-a', 'native']) {
    const { text } = await policies({ namespace, format })
    assert.doesNotMatch(text, /there|mirror|CLUSTER-WIDE/)
  }
  assert.equal((await policies({ namespace, mode: 'enforce' })).all.length, 2)
})

test('GET /attestations/policy 200: policy-controller enforces for a namespace without acknowledgement if its images run nowhere else', async () => {
  const namespace = newNamespace()
  await runs(namespace, `registry.test/${namespace}/app`)
  const { all, comments } = await policies({ namespace, format: 'policy-engine-b', mode: 'enforce' })
  assert.deepEqual([all.length, comments('CLUSTER-WIDE').length, comments('images of the same').length], [1, 1, 0])
})

test('GET /attestations/policy 409: images that would be denied in another namespace are not covered, and that namespace is named', async () => {
  const [namespace, other] = [newNamespace(), newNamespace()]
  await runs(namespace, 'registry.test/denied/app')
  await runs(other, 'registry.test/denied/app', { signatures: [] })
  const query = { namespace, format: 'policy-engine-b' }
  const { all, comments } = await policies(query)
  assert.deepEqual(
    [all, comments('not covered:')],
    [[], [`not covered: registry.test/denied/app (unsigned, in namespace ${other})`]],
  )
  const answer = await ask({ ...query, mode: 'enforce', acknowledgeClusterWide: 'true' })
  assert.equal(answer.status, 409)
  assert.match(answer.text, new RegExp(`registry\\.test/denied/app \\(unsigned, in namespace ${other}\\)`))
  assert.equal((await policies({ namespace, mode: 'enforce' })).all.length, 1)
})

test('GET /attestations/policy 200: only running images, and only those of the namespace', async () => {
  const [namespace, other] = [newNamespace(), newNamespace()]
  await runs(namespace, 'registry.test/team/here')
  await runs(other, 'registry.test/team/there', { signatures: [] })
  await runs(namespace, 'registry.test/team/done', { signatures: [] }, { state: 'terminated' })
  const { all, text } = await policies({ namespace, format: 'native' })
  assert.deepEqual(
    all.map(({ spec }) => spec.images),
    [['registry.test/team/here']],
  )
  assert.doesNotMatch(text, /there|done/)
})

test('GET /attestations/policy 200: images run if they were reported within the window or their pod is alive', async () => {
  const namespace = newNamespace()
  const windowed = await startApp({ IMAGE_INVENTORY_RUNNING_WINDOW_SECS: '400' })
  const body = replica(namespace, [container('app', newDigest(), { repository: 'registry.test/team/window' })])
  await windowed.post('/pod/spec', body)
  await windowed.post('/pod/mark_dead', { pod_name: body.pod_name })
  const uncoveredCount = async () => (await policies({ namespace }, windowed)).comments('not covered:').length
  assert.equal(await uncoveredCount(), 1)
  await age(windowed.sql, 500)
  assert.equal(await uncoveredCount(), 0)
})

test('GET /attestations/policy 200: the same state gives the same bytes', async () => {
  const namespace = newNamespace()
  const images = [...'dacb'].map(
    (name) => [`registry.test/same/${name}`, `https://ci.test/${name < 'c' ? 'x' : 'y'}`] as const,
  )
  for (const [repository, san] of images)
    await runs(namespace, repository, { signatures: [by(san), by('https://ci.test/z')] })
  const first = await policies({ namespace })
  // Rewrites every row, so that the physical order changes.
  await app.sql`update workload_container set state_reason = 'x' where pod_namespace = ${namespace}`
  await app.sql`update image_attestation set post = post || 'x'`
  assert.equal((await policies({ namespace })).text, first.text)
})

test('GET /attestations/policy 200: values from outside stay values, and their comments stay one line', async () => {
  const namespace = newNamespace()
  const sans = [
    'yes',
    '12:30:45',
    '0x_',
    '~',
    '# not covered: x',
    'a: b',
    '- a',
    "it's",
    '"',
    '{}',
    '*a',
    ' lead',
    '2001-01-01',
    'x'.repeat(1_024),
  ]
  await runs(namespace, 'registry.test/odd/app', { signatures: sans.map((san) => signature({ issuer: 'no', san })) })
  await crowd(app, namespace, 1, () => ({ repository: 'registry.test/odd/\u2028# identity: evil', signatures: null }))
  await runs(namespace, 'registry.test/odd/key', {
    signatures: [withKey('-----BEGIN PUBLIC KEY-----\n---\nkind: Evil\n\u2028\u0085\t#\n-----END PUBLIC KEY-----')],
  })
  const { all, comments } = await policies({ namespace })
  assert.equal(all.length, 2)
  assert.deepEqual(
    identitiesOf(all[0])
      .map(({ subject }: Json) => subject)
      .sort(),
    [...sans].sort(),
  )
  assert.match(
    all[1].spec.attestors[0].cosign.key.data,
    /^-----BEGIN PUBLIC KEY-----\n---\nkind: Evil\n\u2028\u0085\t#\n/,
  )
  assert.equal(comments('identity:').length, sans.length + 1)
  assert.deepEqual(comments('not covered:'), ['not covered: "registry.test/odd/ # identity: evil" (not checked)'])
})

test('GET /attestations/policy 200: a large answer is compressed on request; HEAD has the headers alone', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/large', {
    signatures: Array.from({ length: 32 }, (_, i) => by(`https://ci.test/${i}/${'x'.repeat(500)}`)),
  })
  const whole = await app.get(path({ namespace }))
  assert.deepEqual([whole.headers.get('content-encoding'), whole.headers.get('vary')], [null, 'accept-encoding'])
  assert.equal(whole.headers.get('content-length'), String(Buffer.byteLength(whole.text)))
  const answer = await app.app.request(path({ namespace }), { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(answer.headers.get('content-encoding'), 'gzip')
  assert.equal(gunzipSync(Buffer.from(await answer.arrayBuffer())).toString(), whole.text)
  const head = await app.request('HEAD', path({ namespace }))
  assert.deepEqual(
    [head.status, head.text, head.headers.get('content-length')],
    [200, '', whole.headers.get('content-length')],
  )
  assert.equal(head.headers.get('content-type'), 'application/yaml')
})

for (const word of ['true', '1', 'yes', 'on', 'TRUE', 'On', 'yEs']) {
  test(`GET /attestations/policy 200: acknowledgePartial=${word} enforces for covered repositories`, async () => {
    const namespace = newNamespace()
    await runs(namespace, 'registry.test/team/good')
    await runs(namespace, 'registry.test/team/plain', { signatures: [] })
    const { all, comments } = await policies({ namespace, mode: 'enforce', acknowledgePartial: word })
    assert.deepEqual([all.length, comments('not covered:').length], [1, 1])
  })
}

test('GET /attestations/policy 409: enforcing with a repository that is not covered, which is named', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/good')
  await runs(namespace, 'registry.test/team/plain', { signatures: [] })
  await runs(namespace, 'registry.test/team/fresh', null)
  await crowd(app, namespace, 1, () => ({ repository: 'registry.test/team/\u2029x', signatures: null }))
  for (const format of ['policy-engine-a', 'policy-engine-b']) {
    for (const acknowledgePartial of [undefined, 'false', '0', 'no', 'maybe', '', ' true']) {
      const answer = await ask({
        namespace,
        format,
        mode: 'enforce',
        ...(acknowledgePartial === undefined ? {} : { acknowledgePartial }),
      })
      assert.equal(answer.status, 409)
      assert.equal(
        answer.text,
        'an enforcing policy would not cover every running image: registry.test/team/fresh (not checked); registry.test/team/plain (unsigned); "registry.test/team/ x" (not checked). acknowledgePartial=true generates it all the same',
      )
      assert.match(answer.headers.get('content-type')!, /^text\/plain/)
    }
  }
  assert.equal((await policies({ namespace })).all.length, 1, 'audit asks for nothing')
})

for (const [query, field] of [
  ['format=opa', 'format'],
  ['format=', 'format'],
  ['format=Kyverno', 'format'],
  ['format=native&mode=enforce', 'mode'],
  ['format=kguardian&mode=enforce', 'mode'],
  ['mode=block', 'mode'],
  ['mode=Audit', 'mode'],
  ['mode=enforce%20', 'mode'],
  ['namespace=a%00b', 'namespace'],
] as const) {
  test(`GET /attestations/policy 400: ${query}`, async () => {
    const answer = await app.get(`/attestations/policy?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Query deserialize error: ${field}: `))
    if (field === 'format')
      assert.match(answer.text, /policy-engine-a, kyverno, policy-engine-b, policy-controller, native, kguardian/)
  })
}

test('GET /attestations/policy 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/attestations/policy'))
  assertUnauthorized(await guarded.get('/attestations/policy?format=x', { token: 'unknown' }))
})

test('GET /attestations/policy 200: any token may read', async () => {
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/attestations/policy', { token: one })).status, 200)
})

// ---------------------------------------------------------------- many results

test('GET /attestations/policy 200: more results than one batch, by number and by bytes', async () => {
  const namespace = newNamespace()
  const rows = await crowd(app, namespace, 1_300, (n) => ({
    repository: n % 100 === 7 ? `registry.test/crowd/fresh-${n}` : 'registry.test/crowd/app',
    signatures: n % 100 === 7 ? null : [by(`https://ci.test/${n}${n % 50 === 0 ? `/${'x'.repeat(150_000)}` : ''}`)],
  }))
  const { all, comments } = await policies({ namespace })
  const known = rows.filter(({ signatures }) => signatures !== null)
  assert.deepEqual(
    identitiesOf(all[0]).map(({ subject }: Json) => subject),
    known.map(({ signatures }) => JSON.parse(signatures!)[0].san).sort(),
  )
  assert.equal(comments('not covered:').length, 13)
  for (const { digest } of known)
    assert.ok(comments('identity:').some((line) => line.endsWith(` verified ${digest.slice(7, 19)}`)))
})

test('GET /attestations/policy 200: 5000 containers without blocking the event loop', { skip: onlyFull }, async () => {
  const namespace = newNamespace()
  await crowd(crowded, namespace, MAX_CONTAINERS, (n) => ({
    repository: `registry.test/crowd/${n % 2_500}`,
    signatures: [by(`https://ci.test/${n % 700}`), by(`https://ci.test/${(n * 7) % 900}`)],
  }))
  let count = 0
  const turns = await turnsOf(policies({ namespace }, crowded).then(({ all }) => (count = all.length)))
  assert.ok(count > 500, `${count} policies`)
  assert.ok(turns > 20, `${turns} turns`)
})

test('GET /attestations/policy 422: more than 5000 containers, in the cluster or in the namespace', async () => {
  const namespace = newNamespace()
  await crowd(crowded, namespace, MAX_CONTAINERS + 1, () => ({
    repository: 'registry.test/crowd/app',
    signatures: null,
  }))
  for (const query of [{}, { namespace }, { namespace, format: 'native' }, { mode: 'enforce' }] as Record<
    string,
    string
  >[]) {
    const answer = await ask(query, crowded)
    assert.equal(answer.status, 422)
    assert.match(answer.text, /^more than 5000 containers run: .*`namespace`/)
  }
  assert.equal((await policies({ namespace: newNamespace() }, crowded)).all.length, 0)
})

test('GET /attestations/policy 422: signers that exceed the longest answer', async () => {
  const namespace = newNamespace()
  const perImage = Math.ceil(MAX_POLICY_BYTES / 500 / 1_000)
  await crowd(app, namespace, 500, (n) => ({
    repository: `registry.test/crowd/${n}`,
    signatures: Array.from({ length: perImage }, (_, i) => by(`https://ci.test/${n}/${i}/${'x'.repeat(1_000)}`)),
  }))
  const answer = await ask({ namespace }, app)
  assert.equal(answer.status, 422)
  assert.match(answer.text, /^the policies would be longer than 10485760 bytes: .*`namespace`/)
})

test('GET /attestations/policy 422: names that exceed the longest answer, in the format that lists most of them', async () => {
  const namespace = newNamespace()
  await crowd(app, namespace, 4_000, (n) => ({
    repository: `docker.io/library/${'x'.repeat(150)}-${n}`,
    signatures: [by('https://ci.test/hub')],
  }))
  const answer = await ask({ namespace }, app)
  assert.deepEqual([answer.status, answer.text.slice(0, 38)], [422, 'the policies would be longer than 1048'])
  const { all } = await policies({ namespace, format: 'native' })
  const images = new Set(all.flatMap(({ spec }: { spec: { images: string[] } }) => spec.images))
  assert.equal(images.size, 4_000)
})

// ---------------------------------------------------------------- read budget and database

test('GET /attestations/policy 503: refused if 12 MiB of the read budget are not free', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - kib(INITIAL_BYTES) + 1)
  assertShed(await guarded.get('/attestations/policy', { token }), kib(INITIAL_BYTES), budget.totalKib)
  release()
  assert.equal((await guarded.get('/attestations/policy', { token })).status, 200)
})

test('GET /attestations/policy 200: many signers take more of the read budget while they are read; 503 when it is used up', async () => {
  const { budget } = impatient.deps
  const namespace = newNamespace()
  await crowd(impatient, namespace, 600, (n) => ({
    repository: `registry.test/grown/${n}`,
    signatures: Array.from({ length: 8 }, (_, i) => by(`https://ci.test/${n}/${i}/${'x'.repeat(500)}`)),
  }))
  const held = budget.totalKib - 20 * 1024
  const release = (await budget.acquire(held)) as () => void
  const refused = await ask({ namespace }, impatient)
  assert.equal(refused.status, 503)
  assert.match(refused.text, /^read memory budget exhausted: the read needs (?!12288)[0-9]+ KiB/)
  assert.equal(budget.availableKib, budget.totalKib - held)
  release()
  assert.equal((await ask({ namespace }, impatient)).status, 200)
  assert.equal(budget.availableKib, budget.totalKib)
})

test('GET /attestations/policy 503: a table is locked for longer than a statement may take', async () => {
  const namespace = newNamespace()
  await runs(
    namespace,
    'registry.test/team/locked',
    {},
    {},
    {
      ...guarded,
      post: (path: string, body: unknown) => guarded.post(path, body, { token: TOKENS.BROKER_TOKEN_INGEST }),
    },
  )
  for (const table of ['workload_container', 'image_attestation'])
    await whileRefused(guarded.sql, table, async () =>
      assertDatabaseBusy(await guarded.get('/attestations/policy', { token })),
    )
  assert.equal((await guarded.get('/attestations/policy', { token })).status, 200)
})

test('GET /attestations/policy 200: other reads proceed meanwhile, large ones too', async () => {
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/busy', {}, {}, app)
  // This app waits for memory: of several policies one grows at a time, and the next one queues.
  const { budget } = app.deps
  const generated: ReturnType<typeof ask>[] = []
  await whileLocked(app.sql, 'image_attestation', async () => {
    for (let i = 1; i <= 2; i++) {
      generated.push(ask({ namespace }, app))
      await until('it holds some of the budget', () => budget.availableKib <= budget.totalKib - i * kib(INITIAL_BYTES))
    }
    for (const path of ['/pod/traffic?limit=20000', '/images?limit=500', '/svc/info'])
      assert.equal((await app.get(path)).status, 200, path)
  })
  for (const one of generated) {
    const { status, text } = await one
    assert.equal(status, 200, text)
  }
  assert.equal(budget.availableKib, budget.totalKib)
})

test('GET /attestations/policy 499: reading stops when the client disconnects, and the budget is released', async () => {
  const { budget } = app.deps
  const namespace = newNamespace()
  await runs(namespace, 'registry.test/team/left')
  const { server, address } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
  try {
    app.logged.length = 0
    await whileLocked(app.sql, 'image_attestation', async () => {
      const outgoing = http.get(`http://127.0.0.1:${address.port}${path({ namespace })}`, { agent: false })
      outgoing.on('error', () => {})
      await until('it holds some of the budget', () => budget.availableKib < budget.totalKib)
      outgoing.destroy()
      await until(
        'the server hears of it',
        async () => (await new Promise((r) => server.getConnections((_, n) => r(n)))) === 0,
      )
    })
    await until('what it held is given back', () => budget.availableKib === budget.totalKib)
    assert.ok(
      await until('the log has the line', () =>
        app.logged.find((one) => one.route === '/attestations/policy' && one.status === 499),
      ),
    )
  } finally {
    await close(server, 0)
  }
})
