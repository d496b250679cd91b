import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync } from 'node:crypto'
import test from 'node:test'
import fc from 'fast-check'
import { authorityOf, identityOf, type KeylessAuthority, keyOf } from '../../lib/admission/authority.ts'
import { RUNS } from '../support/runs.ts'

const github = 'https://token.actions.githubusercontent.com'
const workflow = 'https://github.com/team/app/.github/workflows/release.yml'
const PEM = '-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----'

const identity = (issuer: string, san: string) => identityOf(authorityOf({ issuer, san }) as KeylessAuthority)

test('a keyless signer is identified by issuer and subject', () => {
  for (const signerKind of ['keyless', undefined] as const)
    assert.deepEqual(
      authorityOf({ ...(signerKind ? { signerKind } : {}), issuer: 'https://i.test', san: 'a@b.test' }),
      {
        kind: 'keyless',
        issuer: 'https://i.test',
        subject: 'a@b.test',
        anyTag: false,
      },
    )
  assert.deepEqual(identity('https://i.test', 'a@b.test'), { issuer: 'https://i.test', subject: 'a@b.test' })
})

test('a key is identified by fingerprint and PEM; without PEM it is no authority', () => {
  assert.deepEqual(authorityOf({ signerKind: 'key', keyFingerprint: 'ab', keyPem: ` ${PEM}\n\n` }), {
    kind: 'key',
    fingerprint: 'ab',
    pem: `${PEM}\n`,
  })
  for (const signer of [
    { keyFingerprint: 'ab' },
    { keyFingerprint: 'ab', keyPem: ' ' },
    { keyPem: PEM },
    { keyFingerprint: ' ', keyPem: PEM },
  ])
    assert.equal(authorityOf({ signerKind: 'key', issuer: 'i', san: 's', ...signer }), null)
})

test('one key is one authority, whatever the line breaks of its PEM and the case of its fingerprint', () => {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const fingerprint = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
  const [begin, ...lines] = pem.trim().split('\n')
  const end = lines.pop()!
  const base64 = lines.join('')
  const of = (keyPem: string, keyFingerprint = fingerprint) =>
    authorityOf({ signerKind: 'key', keyFingerprint, keyPem })
  const one = { kind: 'key', fingerprint, pem }
  for (const text of [
    pem,
    pem.replaceAll('\n', '\r\n'),
    pem.replaceAll('\n', '\r'),
    `${begin}\n${base64}\n${end}`,
    `${begin}\n${base64.match(/.{1,76}/g)!.join('\r\n')}\n${end}`,
    `\n ${begin}\n\n${lines.join('\n  ')}  \n${end}  `,
  ])
    assert.deepEqual(of(text), one, JSON.stringify(text.slice(0, 80)))
  assert.deepEqual(of(pem, fingerprint.toUpperCase()), one)
  // Not exactly one key: only its line ends are normalized.
  const other = `${begin}\n${base64.slice(1)}\n${end}`
  assert.deepEqual(of(other.replaceAll('\n', '\r\n')), { kind: 'key', fingerprint, pem: `${other}\n` })
  assert.deepEqual(of(`${begin}\r\n\r\n${end}`), { kind: 'key', fingerprint, pem: `${begin}\n\n${end}\n` })
  assert.deepEqual(of(`${pem}${pem}`), { kind: 'key', fingerprint, pem: `${pem}${pem}` })
})

test('a signature that names no signer has no authority', () => {
  for (const signer of [{}, { issuer: 'i' }, { san: 's' }, { issuer: ' ', san: 's' }, { issuer: 'i', san: '\t' }])
    assert.equal(authorityOf(signer), null)
})

test('a GitHub workflow that signed for a tag is accepted for any tag', () => {
  assert.deepEqual(identity(github, `${workflow}@refs/tags/v1.2.3`), {
    issuer: github,
    subjectRegExp: '^https://github\\.com/team/app/\\.github/workflows/release\\.yml@refs/tags/.+$',
  })
  assert.equal(
    keyOf(authorityOf({ issuer: github, san: `${workflow}@refs/tags/v1` })!),
    keyOf(authorityOf({ issuer: github, san: `${workflow}@refs/tags/v2/x` })!),
  )
})

test('no other subject is widened', () => {
  for (const [issuer, san] of [
    [github, `${workflow}@refs/heads/main`],
    [github, `${workflow}@refs/tags/`],
    [github, `${workflow}@refs/tags`],
    [github, workflow],
    [github, `http://github.com/team/app@refs/tags/v1`],
    [github, `https://github.com.evil.test/a@refs/tags/v1`],
    [github, `https://github.com/@refs/tags/v1`],
    [github, `x${workflow}@refs/tags/v1`],
    [github, `${workflow}@refs/heads/a@refs/tags/v1`],
    [github, `${workflow}@refs/pull/1/merge@refs/tags/v1`],
    [`${github}/`, `${workflow}@refs/tags/v1`],
    [github.toUpperCase(), `${workflow}@refs/tags/v1`],
    ['https://i.test', `${workflow}@refs/tags/v1`],
  ] as const)
    assert.deepEqual(identity(issuer, san), { issuer, subject: san }, san)
})

test('a tag whose name contains @refs/tags/ is one tag', () => {
  assert.deepEqual(identity(github, `${workflow}@refs/tags/a@refs/tags/b`), identity(github, `${workflow}@refs/tags/c`))
  assert.deepEqual(
    identity(github, `${workflow}@refs/tags/a@refs/heads/b`),
    identity(github, `${workflow}@refs/tags/c`),
  )
})

test('the regular expression matches any tag of that workflow and no other, whatever characters its name has', () => {
  const part = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'.+*?()[]{}|^$\\/-_@ ~#&ab1é\u{1f600}') }),
    fc.string({ unit: 'grapheme' }),
  )
  fc.assert(
    fc.property(part, part, part, (name, tag, other) => {
      const subject = `https://github.com/a${name}@refs/tags/v${tag}`
      const one = authorityOf({ issuer: github, san: subject }) as KeylessAuthority
      if (/[\n\r\u2028\u2029]/.test(tag) || name.includes('@refs/')) return
      const { subjectRegExp } = identityOf(one) as { subjectRegExp: string }
      const expression = new RegExp(subjectRegExp)
      assert.match(subject, expression)
      assert.match(`https://github.com/a${name}@refs/tags/x`, expression)
      assert.equal(new RegExp(subjectRegExp, 'u').test(subject), true)
      if (other !== name) assert.doesNotMatch(`https://github.com/a${other}@refs/tags/x`, expression)
      for (const not of [
        `x${subject}`,
        `https://github.com/a${name}@refs/heads/x`,
        `https://github.com/a${name}@refs/tags/`,
      ])
        assert.doesNotMatch(not, expression)
      // RE2 lacks look-around, back-references, possessive quantifiers and named groups; each needs one of these
      // unescaped.
      assert.doesNotMatch(subjectRegExp.slice(1, -3).replace(/\\[\\^$.*+?()[\]{}|]/g, ''), /[\\^$.*+?()[\]{}|]/)
    }),
    { numRuns: RUNS },
  )
})

test('keys distinguish authorities and sort keyless ones first', () => {
  const all = [
    { issuer: 'a', san: 'b' },
    { issuer: 'a","b', san: 'c' },
    { issuer: 'a', san: 'b","c' },
    { issuer: 'b', san: 'a' },
    { issuer: github, san: `${workflow}@refs/tags/v1` },
    { issuer: github, san: workflow },
    { signerKind: 'key' as const, keyFingerprint: 'a', keyPem: 'b' },
    { signerKind: 'key' as const, keyFingerprint: 'a', keyPem: 'c' },
    { signerKind: 'key' as const, keyFingerprint: 'b', keyPem: 'b' },
  ].map((signer) => ({ signer, key: keyOf(authorityOf(signer)!) }))
  assert.equal(new Set(all.map(({ key }) => key)).size, all.length)
  const kinds = all.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ signer }) => 'signerKind' in signer)
  assert.deepEqual(kinds, [...kinds].sort())
})
