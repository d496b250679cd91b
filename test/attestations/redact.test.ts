/**
 * Redaction of details, and that nothing else is lost (docs/contract.md#signatures-and-attestations).
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { redact, redactDetails } from '../../lib/attestations/redact.ts'
import { depth } from '../support/depth.ts'

const numRuns = depth(200, 2_000)

const HEX = 'ab'.repeat(32)
const JWT = 'eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl'

/** Details as sent, and as stored. */
const EXAMPLES: [string, string][] = [
  // Addresses.
  ['GET https://user:pw@registry.test/v2/x?token=abc failed', 'GET <url> failed'],
  ['GET "https://[::1]:443/v2/x,y;z": refused', 'GET "<url>": refused'],
  ['oci://registry.test/app, next', '<url> next'],
  ['dial tcp 10.1.2.3:443: connect: connection refused', 'dial tcp <host>: connect: connection refused'],
  ['dial tcp [2001:db8::1]:443: i/o timeout', 'dial tcp [<host>]:443: i/o timeout'],
  ['from ::1 to fe80::1%eth0/64, ::ffff:10.0.0.1.', 'from <host> to <host>/…, <host>.'],
  ['at 1:2:3:4:5:6:7:8:443 peer=2001:db8::1:', 'at <host> peer=<host>:'],
  ['lookup registry.test. on 10.0.0.53:53: no such host', 'lookup <host>. on <host>: no such host'],
  ['registry.test:5000/team/app:v1', '<host>/…'],
  ['registry:5000/app, localhost:80, LOCALHOST:1 and localhost', '<host>/…, <host>, <host> and localhost'],
  [`registry.test/app@sha256:${HEX}`, `<host>/…@sha256:${HEX}`],
  ['x/registry.test/y and |registry.test| (mirror.registry.test)', 'x/<host>/… and |<host>| (<host>)'],
  ['10.0.0.1.nip.io ip-10.0.0.1-x bücher.example xn--bcher-kva.xn--p1ai', '<host> <host> <host> <host>'],
  ['https%3A%2F%2Fregistry.test%2Fv2 https:%2F%2Fregistry.test%2Fv2', '<url> <url>'],
  [String.raw`https:\/\/registry.test\/v2\/app: refused`, '<url> refused'],
  ['registry.test.:5000/team/app, registry.test./app, registry.:443', '<host>/…, <host>/…, <host>'],
  ['dial tcp: lookup registry on 10.96.0.10:53: no such host', 'dial tcp: lookup <host> on <host>: no such host'],
  ['lookup registry: no such host', 'lookup <host>: no such host'],
  ['ewtest.a.aa:1/app eyJhbGciOi.x', '<host>/… <redacted>'],
  // Credentials.
  [
    'user:pw@host me@mail.test git@git.test:org/repo',
    '<credentials>@host <credentials>@<host> <credentials>@<host>:org/repo',
  ],
  ['a:p@w@registry.test/app', '<credentials>@<host>/…'],
  // Secrets.
  [`Authorization: Bearer ${JWT}`, 'Authorization: Bearer <redacted>'],
  ['BASIC dXNlcjpw/d+==, then', 'BASIC <redacted>, then'],
  ['Bearer "a b c" d', 'Bearer "<redacted>" d'],
  ['Bearer Bearer Basic x y', 'Bearer Bearer Basic <redacted> y'],
  [`got ${JWT}, not eyJhbGciOi.x`, 'got <redacted>, not <redacted>'],
  ['token=abc==&x=1 password:hunter2 --api-key=k', 'token=<redacted>&x=1 password:<redacted> --api-key=<redacted>'],
  ['x?token=a&y=1#sig=b|c?d#e&code=4/c1', 'x?token=<redacted>&y=1#sig=<redacted>&code=<redacted>'],
  [
    '{"token":"a b","code":"UNAUTHORIZED","password" : "c\\"d"}',
    '{"token":"<redacted>","code":"UNAUTHORIZED","password" : "<redacted>"}',
  ],
  [String.raw`{\"token\":\"a b\"} "pw": "a\"b c" then`, String.raw`{\"token\":\"<redacted>"} "pw": "<redacted>" then`],
  [
    'Authorization: token a1b2c3, authorization: Negotiate YII=',
    'Authorization: token <redacted>, authorization: Negotiate <redacted>',
  ],
  ['x-api-key: 0123456789abcdef X-Registry-Auth: dXNlcjpwYXNz', 'x-api-key: <redacted> X-Registry-Auth: <redacted>'],
  ['access_token: abcdef, id_token: "abcdef"', 'access_token: <redacted>, id_token: "<redacted>"'],
  [
    'aws_access_key_id = AKIA aws_secret_access_key: wJ/K7',
    'aws_access_key_id = <redacted> aws_secret_access_key: <redacted>',
  ],
  [
    'password is "hunter2", token abc123 expired, --password hunter2',
    'password is "<redacted>", token <redacted> expired, --password <redacted>',
  ],
  [
    'eyJ1c2VybmFtZSI6ImJvYiJ9 ghp_16C7e42F292c6912 glpat-ABCDEFGHIJKL AKIAIOSFODNN7EXAMPLE',
    '<redacted> <redacted> <redacted> <redacted>',
  ],
  [String.raw`x=1\u0026sig=abc1 password\u003dhunter2`, 'x=1&sig=<redacted> password=<redacted>'],
  ['secret = a client_secret: b', 'secret = <redacted> client_secret: <redacted>'],
  [
    'X-Amz-Credential=a X-Goog-Signature=b Key-Pair-Id=c AWSAccessKeyId=d',
    'X-Amz-Credential=<redacted> X-Goog-Signature=<redacted> Key-Pair-Id=<redacted> AWSAccessKeyId=<redacted>',
  ],
  ['token=<abc> token=<redacted>abc', 'token=<<redacted>> token=<redacted>'],
  ['token "abc', 'token "abc'],
  ['token="abc def', 'token="<redacted>'],
  // Paths.
  ['/v2/app/blobs?sig=a&x=1 app/x?y', '/v2/app/blobs app/x'],
  // Texts that stay unchanged.
  ['untrusted_key: none matches, invalid signature: hash', 'untrusted_key: none matches, invalid signature: hash'],
  [
    `sha256:${HEX} ${HEX} v1.2.3 1.2 v1.2.3.4 1.2.3-rc.1 1.30.0+k3s1 1.2.rc1 go1.22.1`,
    `sha256:${HEX} ${HEX} v1.2.3 1.2 v1.2.3.4 1.2.3-rc.1 1.30.0+k3s1 1.2.rc1 go1.22.1`,
  ],
  [
    '1.3.6.1.4.1.57264.1.1 12:34:56 aa:bb:cc:dd:ee:ff std::map e.g. pkg@v1.2.3',
    '1.3.6.1.4.1.57264.1.1 12:34:56 aa:bb:cc:dd:ee:ff std::map e.g. pkg@v1.2.3',
  ],
  ['application/vnd.oci.image.manifest.v1+json', 'application/vnd.oci.image.manifest.v1+json'],
  ['error code 401: MANIFEST_UNKNOWN: exit=1 (x=y)', 'error code 401: MANIFEST_UNKNOWN: exit=1 (x=y)'],
  [
    'no matching signatures: none of those, anonymous token: unexpected status',
    'no matching signatures: none of those, anonymous token: unexpected status',
  ],
  [
    'rpc error: code = NotFound desc, code=MANIFEST_UNKNOWN code=429',
    'rpc error: code = NotFound desc, code=MANIFEST_UNKNOWN code=429',
  ],
  [
    '(Client.Timeout exceeded) main.go:107: open config.json: lookup failed: x',
    '(Client.Timeout exceeded) main.go:107: open config.json: lookup failed: x',
  ],
  [
    `signature: sha256:${HEX} application/vnd.oci.image.index.v1+json: no`,
    `signature: sha256:${HEX} application/vnd.oci.image.index.v1+json: no`,
  ],
  ['', ''],
  ['  blanks around  ', 'blanks around'],
]

test('addresses, hosts and credentials are removed, and nothing else', () => {
  for (const [sent, stored] of EXAMPLES) {
    assert.equal(redact(sent), stored, sent)
    assert.equal(redact(stored), stored, stored)
  }
})

test('only the first 4096 bytes are examined, up to the last blank; 256 bytes are stored, in whole characters', () => {
  const url = `https://registry.test/${'x'.repeat(3_000)}`
  assert.equal(redact(`${url} after`), '<url> after')
  assert.equal(redact(`${url} ${'-'.repeat(1_060)} end`), `<url> ${'-'.repeat(250)}`)
  // Not a byte beyond the cut may change how a word reads.
  assert.equal(redact(`code ${url} ${'x'.repeat(1_060)}registry.test`), 'code <url>')
  assert.equal(redact('x'.repeat(4_097)), '')
  assert.equal(redact('x'.repeat(4_096)), 'x'.repeat(256))
  assert.equal(redact(`${'é'.repeat(128)}é`), 'é'.repeat(128))
  assert.equal(redact(`x${'é'.repeat(128)}`), `x${'é'.repeat(127)}`)
  // The cut could turn a version into an address.
  assert.equal(redact(`${'x'.repeat(248)} 1.2.3.4.5`), `${'x'.repeat(248)} <host>`)
  for (let at = 240; at <= 256; at++) {
    const shown = redact(`${'x'.repeat(at - 1)} registry.test`)
    assert.equal(shown, at + '<host>'.length <= 256 ? `${'x'.repeat(at - 1)} <host>` : 'x'.repeat(at - 1))
  }
})

// ---- Property tests

const words = fc.array(fc.stringMatching(/^[a-z]{1,9}$/), { maxLength: 8 }).map((list) => list.join(' '))
const label = fc.stringMatching(/^[a-z0-9]{1,10}$/)
const host = fc
  .tuple(fc.array(label, { minLength: 1, maxLength: 4 }), fc.stringMatching(/^[a-z]{2,8}$/))
  .map(([labels, last]) => `${labels.join('.')}.${last}`)
  .filter((one) => !/^[^.]*\.(?:go|json|ya?ml|crt|pem|sock|txt)$/.test(one))
const port = fc.integer({ min: 1, max: 65_535 }).map((one) => `:${one}`)
const secret = fc.stringMatching(/^[A-Za-z0-9+/_~.!*-]{12,40}$/).filter((one) => /[A-Z]/.test(one))
const part = fc.stringMatching(/^[A-Za-z0-9_-]{10,40}$/)

/** `::` names no host. */
const ipV6 = fc.ipV6().filter((one) => one !== '::')

/** A text that contains something secret, and that secret. */
const hidden: fc.Arbitrary<readonly [text: string, secret: string]> = fc.oneof(
  host.map((one) => [one, one] as const),
  fc.tuple(host, port).map(([one, at]) => [one + at, one] as const),
  fc.tuple(host, port, part).map(([one, at, path]) => [`${one}.${at}/${path}`, path] as const),
  fc.tuple(host, part).map(([one, path]) => [String.raw`https:\/\/${one}\/${path}`, path] as const),
  host.map(
    (one) => [`lookup ${one.replaceAll('.', '-')}x1 on 10.96.0.10:53`, `${one.replaceAll('.', '-')}x1`] as const,
  ),
  fc.tuple(host, port, part).map(([one, at, path]) => [`${one}${at}/${path}.X`, `${path}.X`] as const),
  fc.ipV4().map((one) => [one, one] as const),
  fc.tuple(fc.ipV4(), port).map(([one, at]) => [one + at, one] as const),
  ipV6.map((one) => [one, one] as const),
  fc.tuple(ipV6, port).map(([one, at]) => [`[${one}]${at}`, one] as const),
  fc
    .tuple(fc.constantFrom('http', 'https', 'oci', 'postgres'), part, host, secret)
    .map(([scheme, user, at, path]) => [`${scheme}://${user}:pw@${at}/${path}`, path] as const),
  fc.tuple(part, secret, label).map(([user, password, at]) => [`${user}:${password}@${at}`, password] as const),
  fc.tuple(part, part, part).map(([a, b, c]) => [`eyJ${a}.${b}.${c}`, b] as const),
  fc
    .tuple(fc.constantFrom('Bearer ', 'bearer ', 'Basic ', 'Authorization: Bearer ', 'Bearer "'), secret)
    .map(([scheme, one]) => [scheme + one, one] as const),
  fc
    .tuple(
      fc.constantFrom(
        'token',
        'access_token',
        'password',
        'client_secret',
        'apiKey',
        'X-Amz-Signature',
        'x-goog-credential',
        'sig',
        'key',
      ),
      fc.constantFrom('=', ':', '="', '":"', ' = ', "='"),
      secret,
    )
    .map(([name, is, one]) => [name + is + one, one] as const),
  fc
    .tuple(fc.constantFrom('password ', 'token "', '--password ', 'passphrase is '), part)
    .filter(([, one]) => /^[A-Za-z]/.test(one) && /\d/.test(one))
    .map(([name, one]) => [name + one, one] as const),
  fc
    .tuple(
      fc.constantFrom('Authorization: token ', 'x-api-key: ', 'auth: ', 'aws_secret_access_key: ', 'token: '),
      secret,
    )
    .filter(([, one]) => /\d/.test(one))
    .map(([name, one]) => [name + one, one] as const),
)
const around = fc.constantFrom(' ', '"', "'", ')', '[', '{', '<', ', ', '; ', ': ', '. ', '\n')

test('hosts, addresses, URLs, credentials, tokens and secrets are removed, whatever surrounds them', () => {
  fc.assert(
    fc.property(
      words,
      fc.constantFrom(' ', ' "', " '", ' (', ' [', ' {', ' <', ', ', '; ', '\n'),
      hidden,
      around,
      words,
      (before, open, [text, secret], close, after) => {
        const shown = redact(before + open + text + close + after)
        assert.ok(!shown.includes(secret), `${secret} in ${shown}`)
      },
    ),
    { numRuns },
  )
})

const plain = fc.oneof(
  fc.stringMatching(/^[a-z]{1,12}$/).filter((one) => !/^(bearer|basic)$/.test(one)),
  fc.stringMatching(/^[a-z]{2,8}_[a-z]{2,8}$/),
  fc.stringMatching(/^[0-9a-f]{64}$/).map((hex) => `sha256:${hex}`),
  fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((parts) => `v${parts.join('.')}`),
  fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((parts) => parts.join('.')),
  fc.nat().map(String),
)

test('plain words, codes, versions and digests stay', () => {
  fc.assert(
    fc.property(fc.array(plain, { maxLength: 3 }), (list) => {
      assert.equal(redact(list.join(' ')), list.join(' '))
    }),
    { numRuns },
  )
})

const pieces = [
  ...[
    '=',
    ':',
    '/',
    '@',
    '.',
    '[',
    ']',
    '<',
    '>',
    '%',
    '"',
    "'",
    '?',
    '&',
    '#',
    '|',
    '-',
    '_',
    ',',
    ';',
    '\\',
    '\n',
    ' ',
    '  ',
    '…',
    'é',
    '😀',
  ],
  ...[
    'Bearer ',
    'basic',
    'token',
    'token=',
    'key:',
    'code',
    'sig=',
    'x-amz-',
    '://',
    'http',
    '::',
    '1',
    '10.0.0.1',
    '::1',
    'fe80',
    'a.bc',
    '.test',
    'localhost',
  ],
  ...[
    '<host>',
    '<url>',
    '<credentials>',
    '<redacted>',
    '<hos',
    'redacted>',
    '/…',
    'sha256:',
    'abcdef012345',
    'v1.2',
    'eyJhbGci',
    '.eyJ',
    'word',
    'www',
    'lookup ',
    ' on ',
    '\\u0026',
    'password is ',
    'a1b2c3',
    'ghp_',
    'main.go',
  ],
]
const anything = fc.oneof(
  fc.array(fc.constantFrom(...pieces), { maxLength: 60 }).map((list) => list.join('')),
  fc.array(fc.constantFrom(...pieces), { minLength: 60, maxLength: 3_000, size: 'max' }).map((list) => list.join('')),
  fc.string({ unit: 'grapheme', maxLength: 400 }),
)

test('redacting twice changes nothing; the result has at most 256 bytes and no half placeholder', () => {
  fc.assert(
    fc.property(anything, (text) => {
      const shown = redact(text)
      assert.equal(redact(shown), shown)
      assert.ok(Buffer.byteLength(shown) <= 256, shown)
      assert.ok(shown.isWellFormed())
    }),
    { numRuns },
  )
})

// ---- Stored lists

test('details are found in stored lists, and nothing else in these changes', () => {
  const stored = String.raw`[{"format":"\"detail\":\"registry.test\"","source":"detail","verified":false,"detail":"at \"registry.test\" \\","tlogIndex":9007199254740993},{"san":"https://registry.test","detail":"fine \u00e9"},{"detail":""}]`
  assert.equal(
    redactDetails(stored),
    String.raw`[{"format":"\"detail\":\"registry.test\"","source":"detail","verified":false,"detail":"at \"<host>\" \\","tlogIndex":9007199254740993},{"san":"https://registry.test","detail":"fine \u00e9"},{"detail":""}]`,
  )
  assert.equal(redactDetails('[]'), '[]')
  fc.assert(
    fc.property(
      fc.array(
        fc.record(
          { format: anything, detail: anything, san: anything },
          { requiredKeys: ['format', 'san'], noNullPrototype: true },
        ),
      ),
      (entries) => {
        const shown = redactDetails(JSON.stringify(entries))
        assert.deepEqual(
          JSON.parse(shown),
          entries.map((entry) => (entry.detail === undefined ? entry : { ...entry, detail: redact(entry.detail) })),
        )
        assert.equal(redactDetails(shown), shown)
      },
    ),
    { numRuns: Math.ceil(numRuns / 10) },
  )
})
