/** The text of policies, compared with files in `test/fixtures/admission/`. `UPDATE_SNAPSHOTS=1` rewrites the files. */
import assert from 'node:assert/strict'
import { createHash, createPublicKey } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import fc from 'fast-check'
import type { Authority } from '../../lib/admission/authority.ts'
import { Repository } from '../../lib/admission/coverage.ts'
import { generate } from '../../lib/admission/index.ts'
import type { Options, Plan } from '../../lib/admission/plan.ts'
import { container, optionsOf, policiesOf, type State, stateOf } from '../support/admission.ts'
import { anyCharacter } from '../support/any-character.ts'
import { signature, statement } from '../support/attestations.ts'
import { assertTaken } from '../support/engines.ts'
import { commentsOf, type Json, readPolicies } from '../support/policies.ts'
import { RUNS } from '../support/runs.ts'

const PEM = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8nXRh950IZbRj8Ra/N9sbqOPZrfM
5/KAQN0/KjHcorm/J5yctVd7iEcnessRQjU917hmKO6JWVGHpDguIyakZA==
-----END PUBLIC KEY-----
`
const FINGERPRINT = createHash('sha256')
  .update(createPublicKey(PEM).export({ type: 'spki', format: 'der' }))
  .digest('hex')
const FORMATS = ['policy-engine-a', 'policy-engine-b', 'native'] as const
const folder = new URL('../fixtures/admission/', import.meta.url)

const fields = (of: object) => of as never
const keyless = (san: string) => fields(signature({ issuer: 'https://issuer.test', san }))
const ofKey = fields({
  format: 'cosign-bundle',
  verified: true,
  signerKind: 'key',
  keyName: 'release',
  keyFingerprint: FINGERPRINT,
  keyPem: PEM,
})
const github = 'https://github.com/team/app/.github/workflows/release.yml'

const states: Record<string, State> = {
  keyless: stateOf([
    container('1', 'registry.test/team/app', { signatures: [keyless('https://ci.test/app')] }),
    container('2', 'registry.test/team/app', {
      signatures: [keyless('https://ci.test/app'), keyless('https://ci.test/app-next')],
    }),
    container('3', 'registry.test/team/other', { signatures: [keyless('https://ci.test/other')] }),
    container('4', 'registry.test/team/alike', { signatures: [keyless('https://ci.test/other')] }),
  ]),
  tag: stateOf([
    container('1', 'registry.test/team/app', {
      signatures: [fields(signature({ san: `${github}@refs/tags/v1.2.3` }))],
    }),
    container('2', 'registry.test/team/app', {
      signatures: [fields(signature({ san: `${github}@refs/tags/v1.2.4` }))],
    }),
    container('3', 'registry.test/team/app', { signatures: [fields(signature({ san: `${github}@refs/heads/main` }))] }),
  ]),
  key: stateOf([container('1', 'registry.test/team/app', { signatures: [ofKey, keyless('https://ci.test/app')] })]),
  provenance: stateOf([
    container('1', 'registry.test/team/app', {
      signatures: [keyless('https://ci.test/app')],
      attestations: [fields(statement({ issuer: 'https://issuer.test', san: 'https://ci.test/app' }))],
    }),
  ]),
  uncovered: stateOf([
    container('1', 'registry.test/team/app', { signatures: [keyless('https://ci.test/app')] }),
    container('2', 'registry.test/team/plain', { verdict: 'unsigned', signatures: [] }),
    container('3', 'registry.test/team/fresh', null),
    container('4', 'registry.test/team/half', { signatures: [keyless('https://ci.test/app')] }),
    container('5', 'registry.test/team/half', { verdict: 'invalid', signatures: [] }),
    container('6', 'registry.test/team/*', { signatures: [keyless('https://ci.test/app')] }),
    container('7', 'registry.test/team/a "b" (unsigned)', { verdict: 'unknown', signatures: [] }),
  ]),
  'docker-hub': stateOf([
    container('1', 'docker.io/library/nginx', {}, 'nginx:1.27'),
    container('2', 'docker.io/team/app', {}, 'mirror.test/team/app:v1'),
  ]),
  nothing: stateOf([container('1', 'registry.test/team/plain', { verdict: 'unsigned', signatures: [] })]),
}

const goldenName = (name: string, { format, isEnforced }: Partial<Options>) =>
  `${name}.${format}.${isEnforced ? 'enforce' : 'audit'}.yaml`

for (const [name, state] of Object.entries(states)) {
  for (const format of FORMATS) {
    for (const isEnforced of format === 'native' ? [false] : [false, true]) {
      const options = { format, isEnforced, namespace: name === 'keyless' ? 'shop' : null }
      test(`${goldenName(name, options)} is generated as stored, and its engine accepts it`, async () => {
        const text = await policiesOf(state, options)
        const file = new URL(goldenName(name, options), folder)
        if (process.env.UPDATE_SNAPSHOTS) writeFileSync(file, text)
        assert.equal(
          text,
          existsSync(file) ? readFileSync(file, 'utf8') : '',
          `${goldenName(name, options)} differs; UPDATE_SNAPSHOTS=1 writes it anew`,
        )
        const policies = readPolicies(text)
        for (const policy of policies) assertTaken(policy)
        assert.equal(policies.length === 0, name === 'nothing')
      })
    }
  }
}

for (const format of FORMATS) {
  test(`a policy of ${format} fits into \`kubectl apply\`, however many repositories one signer signed`, async () => {
    // `kubectl apply` copies the policy into an annotation.
    const maxBytes = 256 * 1024
    const names = Array.from(
      { length: 4_000 },
      (_, i) => `registry.test/platform/team-${i % 50}/service-${String(i).padStart(4, '0')}`,
    )
    const signer = { signatures: [keyless('https://ci.test/app')] }
    const state = stateOf(
      names.map((name, i) => container(`i${i}`, name, signer, i % 2 ? `mirror.${name}:v1` : undefined)),
    )
    const policies = readPolicies(await policiesOf(state, { format }))
    for (const policy of policies) {
      assertTaken(policy)
      assert.ok(JSON.stringify(policy).length < maxBytes, `${JSON.stringify(policy).length} bytes`)
    }
    assert.equal(new Set(policies.map(({ metadata }) => metadata.name)).size, policies.length)
    const globs = (policy: Json): string[] =>
      format === 'native'
        ? policy.spec.images
        : (policy.spec.images ?? policy.spec.matchImageReferences).map((one: Json) => one.glob)
    const all = policies.flatMap(globs)
    assert.equal(new Set(all).size, all.length, 'each name is in one policy')
    const own = new Set(all.map((glob) => glob.replace(/[:@]\*+$/, '')))
    for (const [i, name] of names.entries()) {
      assert.ok(own.has(name), name)
      if (format !== 'native' && i % 2) assert.ok(own.has(`mirror.${name}`), name)
    }
    const signers = policies.map(({ spec }) => JSON.stringify(spec.attestors ?? spec.authorities))
    assert.equal(new Set(signers).size, 1)
  })
}

test('a key is named by its PEM, whatever fingerprint was reported', async () => {
  const other = PEM.replace('MFkw', 'MFkx')
  for (const [keyFingerprint, keyPem, shown] of [
    [FINGERPRINT.toUpperCase(), PEM, `key with SHA-256 ${FINGERPRINT} verified`],
    [FINGERPRINT, PEM.replaceAll('\n', '\r\n'), `key with SHA-256 ${FINGERPRINT} verified`],
    ['a b', PEM, `key with SHA-256 ${FINGERPRINT}, reported as "a b": NOT THE SAME, verified`],
    [FINGERPRINT, other, `, reported as ${FINGERPRINT}: NOT THE SAME, verified`],
    // Two keys, of which a parser may read the second, and texts that no parser reads as a key.
    [FINGERPRINT, `${PEM}${other}`, `key with SHA-256 unknown, reported as ${FINGERPRINT}: NOT THE SAME, verified`],
    [
      FINGERPRINT,
      PEM.replace('MFkw', 'a: b\n\nMFkw'),
      `key with SHA-256 unknown, reported as ${FINGERPRINT}: NOT THE SAME, verified`,
    ],
  ] as const) {
    const signatures = [fields({ format: 'f', verified: true, signerKind: 'key', keyFingerprint, keyPem })]
    const text = await policiesOf(stateOf([container('1', 'registry.test/a', { signatures })]))
    const [line] = commentsOf(text, 'identity:')
    assert.ok(line!.includes(shown), line)
  }
})

test('every golden file is used by a test', () => {
  const known = Object.keys(states).flatMap((name) =>
    FORMATS.flatMap((format) =>
      (format === 'native' ? [false] : [false, true]).map((isEnforced) => goldenName(name, { format, isEnforced })),
    ),
  )
  assert.deepEqual(
    readdirSync(folder)
      .filter((name) => name.endsWith('.yaml'))
      .sort(),
    known.sort(),
  )
})

test('the digests listed with an identity are bounded, and the rest is counted', async () => {
  const one = stateOf(Array.from({ length: 40 }, (_, i) => container(`image-${i}`, 'r.test/a')))
  const [line, ...others] = commentsOf(await policiesOf(one), 'identity:')
  assert.deepEqual(others, [])
  assert.equal(line!.match(/\b[0-9a-f]{12}\b/g)!.length, 16)
  assert.match(line!, / and 24 more$/)
})

// ---------------------------------------------------------------- property test

/** Includes values that ingest refuses: escaping must not depend on checks elsewhere. */
const odd = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: anyCharacter }),
  fc.constantFrom(
    'yes',
    '12:30:45',
    '0x_',
    '~',
    '# x',
    'a: b',
    '- a',
    '\u2028',
    'a\n---\nb',
    '"',
    "'",
    '{{ x }}',
    '*',
    '\ud800',
  ),
)
const spice = (text: fc.Arbitrary<string>) =>
  fc.oneof(
    text,
    fc.tuple(text, odd).map((both) => both.join('')),
    odd,
  )
const authority: fc.Arbitrary<Authority> = fc.oneof(
  fc.record({
    kind: fc.constant('keyless' as const),
    issuer: spice(fc.constantFrom('https://token.actions.githubusercontent.com', 'https://issuer.test')),
    subject: spice(fc.webUrl()),
    anyTag: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant('key' as const),
    fingerprint: spice(fc.constant('ab'.repeat(32))),
    pem: fc.oneof(
      odd.map((text) => `${text}\n`),
      odd.map((text) => `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----\n`),
      fc.constant(PEM),
    ),
  }),
)
const repository = fc
  .tuple(spice(fc.webUrl().map((url) => url.slice(8))), fc.array(odd, { maxLength: 2 }))
  .map(([name, spelled]) => {
    const one = new Repository(name)
    for (const text of spelled) one.spelled.add(text).add('mirror.test/a')
    one.given.add(name)
    return one
  })
const plan: fc.Arbitrary<Plan> = fc.record({
  groups: fc.array(
    fc.record({
      repositories: fc.array(repository, { minLength: 1, maxLength: 3 }),
      authorities: fc.array(authority, { minLength: 1, maxLength: 3 }),
      predicate: fc.option(fc.oneof(fc.constant('https://slsa.dev/provenance/v1'), odd)),
    }),
    { maxLength: 3 },
  ),
  identities: fc.array(fc.record({ authority, digests: fc.array(odd, { minLength: 1, maxLength: 20 }) }), {
    maxLength: 3,
  }),
  uncovered: fc.array(fc.record({ name: odd, reason: odd }), { maxLength: 3 }),
  elsewhere: fc.array(odd, { maxLength: 40 }),
})

/** Values from outside as they stand in the policies, in group order. */
const signersIn = ({ spec }: Json): unknown[] =>
  (spec.attestors ?? spec.authorities).map((one: Json) => {
    const { key, keyless } = one.cosign ?? one
    const { issuer, subject, subjectRegExp } = keyless?.identities?.[0] ?? keyless ?? {}
    return key ? (key.data ?? key.publicKey) : [issuer, subject ?? subjectRegExp]
  })
const escaped = (text: string) =>
  `^${[...text].map((one) => ('\\^$.*+?()[]{}|'.includes(one) ? `\\${one}` : one)).join('')}@refs/tags/.+$`
const signersOf = (authorities: readonly Authority[]): unknown[] =>
  authorities.map((one) =>
    one.kind === 'key' ? one.pem : [one.issuer, one.anyTag ? escaped(one.subject) : one.subject],
  )

test('for any plan every parser reads the same values, and comments stay comments', async () => {
  const options = fc.record({
    format: fc.constantFrom(...FORMATS),
    isEnforced: fc.boolean(),
    namespace: fc.option(odd),
  })
  await fc.assert(
    fc.asyncProperty(plan, options, async (one, { format, isEnforced, namespace }) => {
      const text = (await generate(one, optionsOf({ format, wireFormat: format, isEnforced, namespace }))).toString()
      // Half a surrogate pair has no UTF-8 form.
      const policies = readPolicies(text)
      const isTwice = format === 'policy-engine-b'
      const expected = one.groups.flatMap((group) => (isTwice && group.predicate !== null ? [group, group] : [group]))
      assert.equal(policies.length, expected.length)
      for (const [i, policy] of policies.entries()) {
        const { authorities, predicate, repositories } = expected[i]!
        assert.deepEqual(signersIn(policy), signersOf(authorities))
        const names = JSON.stringify(policy.spec.matchImageReferences ?? policy.spec.images)
        for (const { name } of repositories)
          assert.ok(names.includes(JSON.stringify(name).slice(1, -1)) || format !== 'policy-engine-a', name)
        if (format === 'native') assert.equal(policy.metadata.namespace, namespace ?? undefined)
        if (format === 'policy-engine-a')
          assert.equal(
            policy.spec.matchConstraints.namespaceSelector?.matchLabels['kubernetes.io/metadata.name'],
            namespace ?? undefined,
          )
        if (format !== 'policy-engine-b')
          assert.equal(
            policy.spec.attestations?.[0].predicateType ?? policy.spec.attestations?.[0].intoto.type ?? null,
            predicate,
          )
      }
      // Every line above the policies is one that the broker writes.
      const comments = commentsOf(text)
      const ofScope = isTwice ? 1 + (namespace === null ? 0 : 1 + Math.sign(one.elsewhere.length)) : 0
      assert.equal(comments.length, 4 + ofScope + one.identities.length + one.uncovered.length)
      assert.equal(comments.filter((line) => /^identity: /.test(line)).length, one.identities.length)
      assert.equal(comments.filter((line) => /^not covered: /.test(line)).length, one.uncovered.length)
      for (const line of comments) assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u)
    }),
    { numRuns: RUNS },
  )
})
