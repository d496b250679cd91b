/** Planning of policies, compared with a plain model of the rules. */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { keyOf } from '../../lib/admission/authority.ts'
import { Coverage, type SignatureResult } from '../../lib/admission/coverage.ts'
import { planOf } from '../../lib/admission/index.ts'
import { MAX_POLICY_BYTES } from '../../lib/admission/limits.ts'
import { Slice } from '../../lib/event-loop/slices.ts'
import { normalRepository } from '../../lib/supply-chain/index.ts'
import { container, coverageOf, policiesOf, type State, stateOf } from '../support/admission.ts'
import { signature, statement } from '../support/attestations.ts'
import { RUNS } from '../support/runs.ts'

const PEM = '-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----'
const V1 = 'https://slsa.dev/provenance/v1'
const V02 = 'https://slsa.dev/provenance/v0.2'

type Signatures = SignatureResult['signatures']
type Attestations = SignatureResult['attestations']
const by = (san: string) => signature({ issuer: 'https://i.test', san }) as Signatures[number]
const key = (fingerprint: string, pem?: string) =>
  ({
    format: 'f',
    verified: true,
    signerKind: 'key',
    keyFingerprint: fingerprint,
    ...(pem ? { keyPem: pem } : {}),
  }) as Signatures[number]
const attestedBy = (san: string, predicateType = V1) =>
  statement({ issuer: 'https://i.test', san, predicateType }) as Attestations[number]

/** A plan without the fields that tests do not compare. */
async function planned(state: State) {
  const { groups, identities, uncovered } = await planOf(await coverageOf(state))
  return {
    groups: groups.map(({ repositories, authorities, predicate }) => ({
      repositories: repositories.map(({ name }) => name),
      authorities: authorities.map(keyOf),
      predicate,
    })),
    identities: identities.map(({ authority, digests }) => ({ authority: keyOf(authority), digests })),
    uncovered,
  }
}

const uncovered = async (...containers: ReturnType<typeof container>[]) =>
  (await planned(stateOf(containers))).uncovered
const subjects = (authorities: readonly string[]) => authorities.map((one) => JSON.parse(one)[2])

test('a repository is covered when each of its digests is verified', async () => {
  const one = container('1', 'r.test/a')
  assert.deepEqual(await uncovered(one, container('2', 'r.test/a')), [])
  for (const verdict of ['unsigned', 'invalid', 'unknown', 'key_signed'] as const)
    assert.deepEqual(await uncovered(one, container('2', 'r.test/a', { verdict, signatures: [] })), [
      { name: 'r.test/a', reason: verdict },
    ])
  assert.deepEqual(await uncovered(one, container('2', 'r.test/a', null)), [
    { name: 'r.test/a', reason: 'not checked' },
  ])
  const nobody = container('2', 'r.test/a', { signatures: [key('ab')] })
  assert.deepEqual(await uncovered(one, nobody), [{ name: 'r.test/a', reason: 'only a key whose PEM is unknown' }])
})

test('one signer that a policy can express is enough; the others are left out', async () => {
  const { groups } = await planned(
    stateOf([container('1', 'r.test/a', { signatures: [key('ab'), by('one'), key('cd', PEM)] })]),
  )
  assert.deepEqual(groups[0]!.authorities, [
    keyOf({ kind: 'keyless', issuer: 'https://i.test', subject: 'one', anyTag: false }),
    keyOf({ kind: 'key', fingerprint: 'cd', pem: `${PEM}\n` }),
  ])
})

test('the estimated memory grows with the signers and the attestations of a result', async () => {
  const bytesOf = async (signatures: Signatures, attestations: Attestations) =>
    (await coverageOf(stateOf([container('1', 'r.test/a', { signatures, attestations })]))).estimatedBytes
  const signed = await bytesOf([by('a')], [])
  const attested = await bytesOf([by('a')], [attestedBy('a')])
  assert.ok(attested > signed, `${attested} bytes, ${signed} without attestation`)
  assert.ok((await bytesOf([by('a'), by('b')], [])) > signed)
})

test('unverified entries are ignored', async () => {
  const signatures = [{ ...by('junk'), verified: false }, by('one')] as Signatures
  const attestations = [{ ...attestedBy('one'), verified: false }] as Attestations
  const { groups } = await planned(stateOf([container('1', 'r.test/a', { signatures, attestations })]))
  assert.deepEqual([subjects(groups[0]!.authorities), groups[0]!.predicate], [['one'], null])
})

test('the reason comes from the first failing digest, in digest order', async () => {
  const [a, b, c] = [
    container('1', 'r.test/a', { signatures: [key('ab')] }),
    container('2', 'r.test/a', { verdict: 'invalid', signatures: [] }),
    container('3', 'r.test/a', null),
  ]
  for (const order of [
    [a, b, c],
    [c, b, a],
    [b, c, a],
  ])
    assert.deepEqual(await uncovered(...order), [{ name: 'r.test/a', reason: 'only a key whose PEM is unknown' }])
  for (const order of [
    [b, c],
    [c, b],
  ])
    assert.deepEqual(await uncovered(...order), [{ name: 'r.test/a', reason: 'invalid' }])
  assert.deepEqual(await uncovered(container('0', 'r.test/a'), c, b), [{ name: 'r.test/a', reason: 'invalid' }])
})

test('signers of a failed repository are not counted', async () => {
  const coverage = new Coverage()
  const [failed, ...others] = [container('9', 'r.test/a', null), container('1', 'r.test/a'), container('2', 'r.test/a')]
  for (const { running } of [failed!, ...others]) coverage.add(running)
  const signatures = Array.from({ length: 11 }, (_, i) => by(`${i}${'x'.repeat(1024 * 1024)}`))
  for (const { running } of others)
    coverage.addResult(running.digest, { verdict: 'verified', signatures, attestations: [] })
  assert.deepEqual((await planOf(coverage)).uncovered, [{ name: 'r.test/a', reason: 'not checked' }])
})

test('results that changed after the containers were read count with their new value', async () => {
  const state = stateOf([container('1', 'r.test/a'), container('2', 'r.test/b'), container('3', 'r.test/c')])
  const results = new Map(state.results)
  const [one, two] = state.running.map(({ digest }) => digest) as [string, string]
  results.delete(one)
  results.set(two, { verdict: 'unsigned', signatures: [], attestations: [] })
  const plan = await planned({ running: state.running, results })
  assert.deepEqual(plan.uncovered, [
    { name: 'r.test/a', reason: 'not checked' },
    { name: 'r.test/b', reason: 'unsigned' },
  ])
  assert.deepEqual(plan.groups[0]!.repositories, ['r.test/c'])
})

test('results of digests that cannot change the outcome are not requested', async () => {
  const coverage = new Coverage()
  const rows = [
    container('1', 'r.test/a'),
    container('2', 'r.test/a', null),
    container('3', 'r.test/a'),
    container('4', 'r.test/b'),
  ].map(({ running }) => running)
  for (const row of [...rows].reverse()) coverage.add(row)
  assert.deepEqual(await coverage.digests(new Slice()), [rows[0]!.digest, rows[3]!.digest])
})

test('the authorities of all digests are listed once, in order', async () => {
  const { groups, identities } = await planned(
    stateOf([
      container('1', 'r.test/a', { signatures: [by('b'), by('b')] }),
      container('2', 'r.test/a', { signatures: [by('a'), key('cd', PEM), by('b')] }),
    ]),
  )
  assert.deepEqual(subjects(groups[0]!.authorities), ['a', 'b', `${PEM}\n`])
  assert.deepEqual(
    identities.map(({ digests }) => digests.length),
    [1, 2, 1],
  )
})

test('a predicate is required if one of the authorities attested it for each digest; the newer predicate first', async () => {
  const predicateOf = async (...attestations: Attestations[]) => {
    const containers = attestations.map((each, i) =>
      container(`${i}`, 'r.test/a', { signatures: [by(`signer-${i}`)], attestations: each }),
    )
    return (await planned(stateOf(containers))).groups[0]!.predicate
  }
  assert.equal(await predicateOf([attestedBy('signer-0')]), V1)
  assert.equal(await predicateOf([attestedBy('signer-0', V02)]), V02)
  assert.equal(await predicateOf([attestedBy('signer-0', V02), attestedBy('signer-0')]), V1)
  assert.equal(await predicateOf([attestedBy('signer-1')], [attestedBy('signer-0')]), V1)
  assert.equal(await predicateOf([attestedBy('stranger')]), null)
  assert.equal(await predicateOf([attestedBy('signer-0')], []), null)
  assert.equal(await predicateOf([attestedBy('signer-0')], [attestedBy('stranger')]), null)
  assert.equal(await predicateOf([attestedBy('signer-0')], [attestedBy('signer-0', V02)]), null)
  assert.equal(
    await predicateOf([attestedBy('signer-0'), attestedBy('signer-0', V02)], [attestedBy('signer-0', V02)]),
    V02,
  )
  assert.equal(await predicateOf([attestedBy('signer-0', 'https://spdx.dev/Document')]), null)
  assert.equal(await predicateOf([attestedBy('signer-0', `${V1}/`)]), null)
})

test('repositories with the same authorities and predicate share a policy', async () => {
  const { groups } = await planned(
    stateOf([
      container('1', 'r.test/c', { signatures: [by('a'), by('b')] }),
      container('2', 'r.test/a', { signatures: [by('b'), by('a')] }),
      container('3', 'r.test/b', { signatures: [by('a')] }),
      container('4', 'r.test/d', { signatures: [by('a'), by('b')], attestations: [attestedBy('a')] }),
    ]),
  )
  assert.deepEqual(
    groups.map(({ repositories }) => repositories),
    [['r.test/a', 'r.test/c'], ['r.test/b'], ['r.test/d']],
  )
})

test('all spellings of a Docker Hub repository are one; an image without a repository goes by its reference', async () => {
  const state = stateOf([
    container('1', 'nginx'),
    container('2', 'docker.io/library/nginx'),
    container('3', 'index.docker.io/nginx'),
    container('4', 'registry-1.docker.io/library/nginx'),
    container('5', null, {}, 'nginx:1.27'),
    container('6', null, {}, 'Registry.Test:5000/a/b:v1'),
  ])
  const { groups } = await planned(state)
  assert.deepEqual(
    groups.map(({ repositories }) => repositories),
    [['docker.io/library/nginx', 'registry.test:5000/a/b']],
  )
})

test('repositories with the same name in pods share a policy, also through a third one', async () => {
  const { groups } = await planned(
    stateOf([
      container('1', 'r.test/a', { signatures: [by('a')] }, 'x.test/one:1'),
      container('2', 'r.test/b', { signatures: [by('b')] }, 'x.test/one@sha256:0'),
      container('3', 'r.test/b', { signatures: [by('b')] }, 'x.test/two'),
      container('4', 'r.test/c', { signatures: [by('c')] }, 'x.test/two:1'),
      container('5', 'r.test/d', { signatures: [by('d')] }, 'X.test/two:1'),
      container('6', 'x.test/one', { signatures: [by('e')] }, 'r.test/z'),
    ]),
  )
  assert.deepEqual(
    groups.map(({ repositories, authorities }) => [repositories, subjects(authorities)]),
    [
      [
        ['r.test/a', 'r.test/b', 'r.test/c', 'x.test/one'],
        ['a', 'b', 'c', 'e'],
      ],
      [['r.test/d'], ['d']],
    ],
  )
})

test('a digest in two repositories counts for both', async () => {
  const plan = await planned(stateOf([container('1', null, {}, 'r.test/a:1'), container('1', null, {}, 'r.test/b:1')]))
  assert.deepEqual(plan.groups[0]!.repositories, ['r.test/a', 'r.test/b'])
  assert.equal(plan.identities[0]!.digests.length, 1)
})

test('a name that could be a pattern is in no policy', async () => {
  const odd = ['*', 'r.test/**', 'r.test/a?', 'r.test/[a]', 'r.test/a b', 'r.test/a\u2028']
  const plan = await planned(stateOf([...odd.map((name, i) => container(`${i}`, name)), container('x', 'r.test/a')]))
  assert.deepEqual(
    plan.groups.map(({ repositories }) => repositories),
    [['r.test/a']],
  )
  assert.deepEqual(
    plan.uncovered.map(({ reason }) => reason),
    odd.map(() => 'no policy can name it'),
  )
})

test('an image without a known repository is in no policy', async () => {
  const digest = `sha256:${'a'.repeat(64)}`
  assert.deepEqual(await uncovered(container('y', null, null, digest)), [{ name: digest, reason: 'not checked' }])
  const bare = [digest, 'malformed_reference', '@x', '///']
  const plan = await planned(
    stateOf([
      ...bare.map((one, i) => container(`${i}`, null, {}, one)),
      container('x', 'docker.io/library/malformed_reference'),
    ]),
  )
  assert.deepEqual(
    plan.groups.map(({ repositories }) => repositories),
    [['docker.io/library/malformed_reference']],
  )
  assert.deepEqual(
    plan.uncovered,
    [...bare].sort().map((name) => ({ name, reason: 'no policy can name it' })),
  )
  const mixed = await planned(
    stateOf([
      container('1', 'r.test/a', {}, 'malformed_reference'),
      container('2', null, { verdict: 'unsigned', signatures: [] }, 'r.test/a'),
    ]),
  )
  assert.deepEqual([mixed.groups, mixed.uncovered], [[], [{ name: 'r.test/a', reason: 'unsigned' }]])
})

test('signers that exceed the size of policies are refused, in any order', async () => {
  const long = (n: number) => by(`https://ci.test/${n}/${'x'.repeat(900)}`)
  const most = Math.ceil(MAX_POLICY_BYTES / 32 / 900)
  const containers = Array.from({ length: most }, (_, i) =>
    container(`${i}`, `r.test/${i}`, { signatures: Array.from({ length: 32 }, (_, k) => long(i * 32 + k)) }),
  )
  for (const order of [containers, [...containers].reverse()])
    await assert.rejects(planned(stateOf(order)), { status: 422, message: /namespace/ })
  // The signers of each repository alone fit.
  const alike = containers.map(({ running, result }) => ({
    running,
    result: { ...result!, signatures: containers[0]!.result!.signatures },
  }))
  assert.equal((await planned(stateOf(alike))).groups.length, 1)
})

// ---------------------------------------------------------------- the model

interface Modelled {
  repositories: string[]
  authorities: string[]
  predicate: string | null
}

/** The rules, applied one after another to the whole state. */
function model({ running, results }: State) {
  const nameOf = ({ repository, reference }: State['running'][number]) => {
    const bare = /^sha(256|512):[0-9a-f]{64}/.test(reference)
      ? ''
      : reference.replace(/@.*$/, '').replace(/:[^:/]*$/, '')
    return normalRepository(undefined, repository ?? bare) ?? reference
  }
  const sayable = (one: Signatures[number]): string | null => {
    if (one.signerKind === 'key')
      return one.keyPem ? JSON.stringify(['1', one.keyFingerprint, `${one.keyPem}\n`]) : null
    const tagged = /^(https:\/\/github\.com\/.+)@refs\/tags\/.+$/.exec(one.san!)
    return one.issuer === 'https://token.actions.githubusercontent.com' && tagged
      ? JSON.stringify(['0', one.issuer, tagged[1], true])
      : JSON.stringify(['0', one.issuer, one.san, false])
  }
  const signers = (entries: readonly (Signatures[number] | Attestations[number])[]) =>
    entries.filter(({ verified }) => verified).flatMap((one) => sayable(one) ?? [])
  const rowsOf = (name: string) => running.filter((row) => nameOf(row) === name)
  const digestsOf = (name: string) => [...new Set(rowsOf(name).map(({ digest }) => digest))].sort()
  const reasonOf = (name: string) =>
    digestsOf(name)
      .map((digest) => {
        const result = results.get(digest)
        if (!result) return 'not checked'
        if (result.verdict !== 'verified') return result.verdict
        return signers(result.signatures).length === 0 ? 'only a key whose PEM is unknown' : null
      })
      .find((one) => one !== null) ?? (/[^\w.:/-]/.test(name) ? 'no policy can name it' : null)
  /** Names that pods write, or may write, without tags and with one spelling of Docker Hub. */
  const writtenFor = (name: string) => {
    const texts = [name, ...rowsOf(name).map(({ reference }) => reference.replace(/@.*$/, '').replace(/:[^:/]*$/, ''))]
    return texts
      .filter((text) => /^[\w.:/-]+$/.test(text))
      .map((text) => (/^(localhost|[^/]*[.:][^/]*)\//.test(text) ? text : `docker.io/${text}`))
      .map((text) => text.replace(/^(index\.)?docker\.io\/(library\/)?/, 'hub/'))
  }
  const names = [...new Set(running.map(nameOf))].sort()
  const alike = (name: string): string[] => {
    let all = [name]
    for (;;) {
      const written = all.flatMap(writtenFor)
      // A pattern for any tag of `x` also matches `x:5000/`.
      const isOverlap = (one: string, two: string) =>
        one === two || one.startsWith(`${two.replace('hub/', '')}:`) || two.startsWith(`${one.replace('hub/', '')}:`)
      const more = names.filter(
        (other) => other === name || writtenFor(other).some((one) => written.some((two) => isOverlap(one, two))),
      )
      if (more.length === all.length) return all
      all = more
    }
  }
  const groups = new Map<string, Modelled>()
  const uncovered: { name: string; reason: string }[] = []
  const identities = new Map<string, Set<string>>()
  for (const name of names) {
    const all = alike(name)
    const failed = all.find((one) => reasonOf(one) !== null)
    if (failed !== undefined) {
      uncovered.push({ name, reason: reasonOf(name) ?? `pods write the same name for ${failed}, which is not covered` })
      continue
    }
    const digests = all.flatMap(digestsOf)
    const authorities = [...new Set(digests.flatMap((digest) => signers(results.get(digest)!.signatures)))].sort()
    const predicate =
      [V1, V02].find((type) =>
        digests.every((digest) =>
          signers(results.get(digest)!.attestations.filter(({ predicateType }) => predicateType === type)).some((one) =>
            authorities.includes(one),
          ),
        ),
      ) ?? null
    const same = JSON.stringify([authorities, predicate])
    if (groups.has(same)) groups.get(same)!.repositories.push(name)
    else groups.set(same, { repositories: [name], authorities, predicate })
    for (const digest of digestsOf(name))
      for (const one of signers(results.get(digest)!.signatures))
        identities.set(one, (identities.get(one) ?? new Set()).add(digest))
  }
  return {
    groups: [...groups.values()],
    identities: [...identities]
      .map(([authority, digests]) => ({ authority, digests: [...digests].sort() }))
      .sort((a, b) => (a.authority < b.authority ? -1 : 1)),
    uncovered,
  }
}

const github = 'https://token.actions.githubusercontent.com'
const signer = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .constantFrom('a', 'b', 'c')
      .map((san) => ({ signerKind: 'keyless' as const, issuer: 'https://i.test', san })),
  },
  fc
    .constantFrom('main@refs/heads/x', 'one@refs/tags/v1', 'one@refs/tags/v2', 'two@refs/tags/v1')
    .map((end) => ({ issuer: github, san: `https://github.com/t/${end}` })),
  fc.constantFrom('ab', 'cd').map((keyFingerprint) => ({ signerKind: 'key' as const, keyFingerprint, keyPem: PEM })),
  fc.constantFrom('ab', 'ef').map((keyFingerprint) => ({ signerKind: 'key' as const, keyFingerprint })),
)
const entry = fc
  .tuple(signer, fc.integer({ min: 0, max: 4 }))
  .map(([who, n]) =>
    n === 0 ? { format: 'f', verified: false, error: 'malformed' } : { format: 'f', verified: true, ...who },
  )
const result = fc.record({
  verdict: fc.constantFrom(
    ...([
      'verified',
      'verified',
      'verified',
      'verified',
      'verified',
      'verified',
      'unsigned',
      'invalid',
      'key_signed',
      'unknown',
    ] as const),
  ),
  signatures: fc.array(entry, { minLength: 1, maxLength: 4 }),
  attestations: fc.array(
    fc
      .tuple(entry, fc.constantFrom(V1, V1, V02, 'https://spdx.dev/Document'))
      .map(([one, predicateType]) => ({ ...one, predicateType })),
    { maxLength: 3 },
  ),
}) as fc.Arbitrary<SignatureResult>

const state: fc.Arbitrary<State> = fc
  .record({
    // As in a cluster: an image has one repository, or the repository of each of its references.
    images: fc.array(
      fc.record({
        repository: fc.constantFrom(
          'r.test/a',
          'r.test/b',
          'R.test/b',
          'nginx',
          'docker.io/library/nginx',
          'docker.io/t/x',
          'r.test/*',
          'depot',
          'depot:5000/app',
          null,
        ),
        result: fc.option(result, { freq: 12 }),
        references: fc.array(
          fc.constantFrom(
            // The spelling of the inventory.
            ...[null, null, null, null, null, null],
            'r.test/a:1',
            'nginx',
            'index.docker.io/nginx:2',
            't/x:1',
            'depot:2',
            'mirror.test/n:1',
            `r.test/c@sha256:${'0'.repeat(64)}`,
          ),
          { minLength: 1, maxLength: 2 },
        ),
      }),
      { maxLength: 10 },
    ),
    isStale: fc.boolean(),
  })
  .map(({ images, isStale }) => {
    const digests = images.map((_, i) => `sha256:${((i * 7) % 11).toString(16).padStart(64, '0')}`)
    return {
      running: images.flatMap(({ repository, result, references }, i) =>
        references.map((reference) => ({
          digest: digests[i]!,
          reference: reference ?? `${repository ?? 'mirror.test/n'}:1`,
          repository,
          verdict: isStale ? ('verified' as const) : (result?.verdict ?? null),
        })),
      ),
      results: new Map(images.flatMap(({ result }, i) => (result ? [[digests[i]!, result] as const] : []))),
    }
  })

test('any state is planned as in the model', async () => {
  await fc.assert(
    fc.asyncProperty(state, async (one) => assert.deepEqual(await planned(one), model(one))),
    { numRuns: RUNS },
  )
})

test('the generated states cover the interesting cases', () => {
  const plans = fc.sample(state, { seed: 1, numRuns: 1_000 }).map(model)
  const groups = plans.flatMap((plan) => plan.groups)
  assert.ok(groups.length > 250)
  assert.ok(groups.filter(({ repositories }) => repositories.length > 1).length > 20)
  assert.ok(groups.filter(({ predicate }) => predicate !== null).length > 20)
  const reasons = plans.flatMap(({ uncovered }) => uncovered.map(({ reason }) => reason.replace(/ for .*,/, ',')))
  assert.equal(new Set(reasons).size, 8)
})

test('the same state gives the same text, in any order of its rows', async () => {
  const shuffled = state.chain((one) =>
    fc.tuple(
      fc.constant(one),
      fc.shuffledSubarray([...one.running], { minLength: one.running.length }),
      fc.constantFrom('policy-engine-a', 'policy-engine-b', 'native'),
    ),
  )
  await fc.assert(
    fc.asyncProperty(shuffled, async ([one, running, format]) => {
      assert.equal(
        await policiesOf({ ...one, running }, { format: format as 'native' }),
        await policiesOf(one, { format: format as 'native' }),
      )
    }),
    { numRuns: Math.ceil(RUNS / 5) },
  )
})
