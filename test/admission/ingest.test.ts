/** Policies from data that was posted through the routes of agents and of the signature checker. */
import assert from 'node:assert/strict'
import { createHash, createPublicKey } from 'node:crypto'
import test from 'node:test'
import { checkedAt, keySignature, PEM, resultOf, signature, statement } from '../attestations/results.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { assertTaken } from '../support/engines.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { commentsOf, type Json, readPolicies } from '../support/policies.ts'

const app = await startApp(TOKENS)
const ingest = { token: TOKENS.BROKER_TOKEN_INGEST }
const supplychain = { token: TOKENS.BROKER_TOKEN_SUPPLYCHAIN }

type Fields = Record<string, unknown>

async function runs(
  namespace: string,
  image: string,
  repository: string | null,
  result: Fields | null = {},
  fields: Fields = {},
  digest = newDigest(),
) {
  const one = container('app', digest, { image, repository, ...fields })
  const posted = await app.post(
    '/pod/spec',
    replica(namespace, [one], {
      workload_name: `w-${image}-${digest.slice(7, 15)}`.replace(/[^a-z0-9-]/g, '-').slice(0, 60),
    }),
    ingest,
  )
  assert.equal(posted.status, 200, posted.text)
  if (result) await checked(digest, result)
  return digest
}

async function checked(digest: string, fields: Fields, status = 201) {
  const answer = await app.post(`/images/${digest}/attestation`, resultOf(digest, fields), supplychain)
  assert.equal(answer.status, status, answer.text)
}

async function policies(query: Record<string, string>) {
  const answer = await app.get(`/attestations/policy?${new URLSearchParams(query)}`, {
    token: TOKENS.BROKER_TOKEN_READ,
  })
  assert.equal(answer.status, 200, answer.text)
  const all = readPolicies(answer.text)
  for (const one of all) assertTaken(one)
  return { text: answer.text, all, comments: (opening: string) => commentsOf(answer.text, opening) }
}

const globs = (policy: Json) =>
  (policy.spec.matchImageReferences ?? policy.spec.images).map((one: Json) => one.glob ?? one)

test('GET /attestations/policy 200: names of images in pods, also names that no image can have', async () => {
  const namespace = newNamespace()
  await runs(namespace, `docker.io/nginx:1.27@${newDigest()}`, 'index.docker.io/library/nginx')
  await runs(namespace, 'Registry.Test:5000/team/app:v1', 'Registry.Test:5000/team/app')
  await runs(namespace, 'registry.test/team/init:v1', 'registry.test/team/init', {}, { kind: 'init' })
  await runs(namespace, 'registry.test/team/debug', 'registry.test/team/debug', {}, { kind: 'ephemeral' })
  await runs(namespace, 'registry.test/team/star*:v1', 'registry.test/team/plain')
  const bad = [
    'registry.test/**',
    'registry.test/team/tagged:v1',
    'registry.test//a',
    '../..',
    'a:b/c',
    'registry.test/team/ x',
  ]
  for (const [i, repository] of bad.entries()) await runs(namespace, `registry.test/bad:v${i}`, repository)
  const kyverno = await policies({ namespace })
  const hub = ['', 'docker.io/', 'index.docker.io/'].flatMap((host) => [`${host}library/nginx`, `${host}nginx`])
  const names = [
    ...hub,
    'Registry.Test:5000/team/app',
    'registry.test:5000/team/app',
    ...['debug', 'init', 'plain'].map((one) => `registry.test/team/${one}`),
  ]
  assert.deepEqual(kyverno.all.map(globs), [names.sort().flatMap((one) => [one, `${one}:*`, `${one}@*`])])
  assert.equal(
    kyverno.comments('not covered:').filter((line) => line.endsWith('(no policy can name it)')).length,
    bad.length,
  )
  const [controller] = (await policies({ namespace, format: 'policy-controller' })).all
  assert.ok(globs(controller).includes('index.docker.io/library/nginx@**'))
  // The inventory also knows the repository whose host is in capitals.
  assert.equal(globs(controller).length, 2 * 6)
  const [native] = (await policies({ namespace, format: 'native' })).all
  const others = [
    'docker.io/library/nginx',
    'registry.test:5000/team/app',
    ...['debug', 'init', 'plain'].map((one) => `registry.test/team/${one}`),
  ]
  assert.deepEqual(
    native.spec.images,
    ['index.docker.io/library/nginx', 'Registry.Test:5000/team/app', ...others].sort(),
    'as the inventory has them, too',
  )
})

test('GET /attestations/policy 200: identities as posted: exact in values, escaped in comments', async () => {
  const namespace = newNamespace()
  const sans = [
    'a\u200bverified\u200b000000000000',
    'x\u00a0y',
    '"',
    '\\',
    '# a',
    '{{x}}',
    'ｃｉ',
    '\u{e0041}a',
    'a\u3164b',
    ' a ',
  ]
  await runs(namespace, 'registry.test/team/odd', 'registry.test/team/odd', {
    signatures: sans.map((san) => signature({ san })),
  })
  const { all, comments } = await policies({ namespace, format: 'native' })
  assert.deepEqual(all[0].spec.authorities.map(({ keyless }: Json) => keyless.subject).sort(), [...sans].sort())
  const lines = comments('identity:')
  assert.equal(lines.length, sans.length)
  for (const line of lines) assert.match(line, /^identity: issuer \S+, subject (\S+|".*") verified [0-9a-f]{12}$/)
  assert.ok(lines.some((line) => line.includes('subject "a verified 000000000000" verified')))
})

test('GET /attestations/policy 200: provenance and keys, while results change', async () => {
  const namespace = newNamespace()
  const fingerprint = createHash('sha256')
    .update(createPublicKey(PEM).export({ type: 'spki', format: 'der' }))
    .digest('hex')
  const key = { key_pem: PEM, key_fingerprint: fingerprint }
  const digest = await runs(namespace, 'registry.test/team/app', 'registry.test/team/app', {
    signatures: [keySignature(key)],
    attestations: [
      statement({
        ...keySignature(key),
        issuer: undefined,
        san: undefined,
        predicate_type: 'https://slsa.dev/provenance/v1',
      }),
    ],
  })
  const first = await policies({ namespace, format: 'policy-controller', mode: 'enforce' })
  assert.deepEqual(
    first.all.map(({ metadata }) => metadata.name.endsWith('-provenance')),
    [false, true],
  )
  assert.deepEqual(first.comments('identity:'), [
    `identity: key with SHA-256 ${fingerprint} verified ${digest.slice(7, 19)}`,
  ])
  await checked(digest, { checked_at: checkedAt(1), signatures: [keySignature(key)] })
  assert.equal((await policies({ namespace, format: 'policy-controller' })).all.length, 1)
  await checked(digest, { checked_at: checkedAt(2), verdict: 'unsigned', signatures: [] })
  assert.deepEqual((await policies({ namespace })).comments('not covered:'), [
    'not covered: registry.test/team/app (unsigned)',
  ])
  await app.sql`delete from image_attestation where digest = ${digest}`
  assert.deepEqual((await policies({ namespace })).comments('not covered:'), [
    'not covered: registry.test/team/app (not checked)',
  ])
})
