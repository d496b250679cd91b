// Admission policies (GET /attestations/policy) and trust results (GET /image-trust).

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import { stubServer } from '../lib/stubs.mjs'
import {
  attestation,
  authEnv,
  container,
  digest,
  keylessIdentity,
  next,
  ok,
  pod,
  publicKey,
  refused,
  sameKeys,
  session,
  signature,
  statement,
  tokens,
  unverified,
} from '../lib/supply-chain.mjs'
import { readYaml } from '../lib/yaml.mjs'

let b, s, stub, trusted, t
let answer = () => ({ status: 404, text: 'off' })
before(async () => {
  stub = await stubServer((_req, _body, url) =>
    url.pathname === '/image-trust' ? answer(url) : { status: 404, text: 'not here' },
  )
  ;[b, trusted] = await Promise.all([
    startBroker({ env: authEnv }),
    startBroker({ env: { ...authEnv, EVALUATOR_URL: stub.url } }),
  ])
  s = session(b)
  t = session(trusted)
})
after(async () => {
  await Promise.all([b?.stop(), trusted?.stop(), stub?.close()])
})

// ---------------------------------------------------------------- policy generation

const github = 'https://token.actions.githubusercontent.com'
const provenance = 'https://slsa.dev/provenance/v1'
/** Runs one image of `repository` in `ns`; `result` (verdict, signatures, attestations) is posted unless it is null. */
async function runs(ns, repository, result = {}, { tag = 'v1', workload = `w${next()}`, image } = {}) {
  const d = digest(`policy-${next()}`)
  await s.run(
    pod({ ns, workload, containers: [container(d, { repository, tag, image: image ?? `${repository}:${tag}` })] }),
  )
  if (result) ok(await s.attest(attestation(d, { repository, ...result })), 201)
  return d
}
const space = () => `pol-${next()}`
async function policy(params) {
  const r = ok(await s.get('/attestations/policy', params))
  assert.match(r.headers.get('content-type') ?? '', /^application\/yaml\b/)
  const lines = r.text.split('\n')
  const first = lines.findIndex((l) => l.trim() !== '' && !l.startsWith('#'))
  assert.equal(
    lines.slice(0, first < 0 ? lines.length : first).some((l) => l.startsWith('---')),
    false,
    'no document separator before the first document',
  )
  return { text: r.text, lines, comments: lines.filter((l) => l.startsWith('#')), docs: readYaml(r.text) }
}
const comment = (p, opening) => p.comments.filter((l) => l.startsWith(`# ${opening}`))
const squeezed = (x) => JSON.stringify(x).replace(/\s+/g, '')

check('policies-trust: policy-engine-a, audit: one ImageValidatingPolicy for a covered repository', async () => {
  const ns = space()
  const repository = `registry.test/pol/shop_app${next()}`
  const d = await runs(ns, repository)
  const p = await policy({ namespace: ns })
  assert.equal(p.docs.length, 1)
  const [doc] = p.docs
  assert.deepEqual([doc.apiVersion, doc.kind], ['policies.kyverno.io/v1beta1', 'ImageValidatingPolicy'])
  assert.match(doc.metadata.name, /^kguardian-signed-shop-app\d+-[0-9a-f]{8}$/)
  assert.ok(doc.metadata.annotations['kguardian.dev/generated-by'] && doc.metadata.annotations['kguardian.dev/source'])
  assert.deepEqual(doc.spec.validationActions, ['Audit'])
  const [rule] = doc.spec.matchConstraints.resourceRules
  assert.deepEqual(
    [rule.apiGroups, rule.apiVersions, [...rule.operations].sort(), rule.resources],
    [[''], ['v1'], ['CREATE', 'UPDATE'], ['pods']],
  )
  assert.deepEqual(
    doc.spec.matchImageReferences.map((m) => m.glob).sort(),
    [repository, `${repository}:*`, `${repository}@*`].sort(),
  )
  assert.deepEqual(
    [doc.spec.validationConfigurations.mutateDigest, doc.spec.validationConfigurations.verifyDigest],
    [false, false],
    'audit never rewrites a pod',
  )
  assert.deepEqual(doc.spec.attestors, [
    {
      name: 'a0',
      cosign: { keyless: { identities: [{ issuer: keylessIdentity.issuer, subject: keylessIdentity.san }] } },
    },
  ])
  assert.equal(doc.spec.attestations, undefined)
  assert.equal(doc.spec.validations.length, 3)
  for (const [i, list] of ['containers', 'initContainers', 'ephemeralContainers'].entries()) {
    assert.ok(
      squeezed(doc.spec.validations[i]).includes('verifyImageSignatures(image,[attestors.a0])'),
      JSON.stringify(doc.spec.validations[i]),
    )
    assert.ok(squeezed(doc.spec.validations).includes(list))
    assert.ok(doc.spec.validations[i].message.length > 0)
  }
  for (const opening of ['REVIEW EVERY IDENTITY', 'A signer that signed'])
    assert.ok(comment(p, opening).length > 0, opening)
  const [identity, ...more] = comment(p, 'identity:')
  assert.deepEqual(more, [])
  assert.ok(identity.includes(keylessIdentity.san) && p.text.includes(d.slice(7, 19)), identity)
  assert.deepEqual(comment(p, 'not covered:'), [])
})

check('policies-trust: the default is policy-engine-a in audit mode, both columns of names are accepted', async () => {
  const ns = space()
  await runs(ns, 'registry.test/pol/default')
  const { docs } = await policy({ namespace: ns })
  assert.equal(docs[0].kind, 'ImageValidatingPolicy')
  for (const params of [
    { format: 'policy-engine-a' },
    { format: 'kyverno' },
    { format: ' kyverno ' },
    { mode: 'audit' },
    { mode: '' },
    { format: 'policy-engine-a', mode: 'audit' },
  ]) {
    assert.deepEqual((await policy({ namespace: ns, ...params })).docs, docs, JSON.stringify(params))
  }
  for (const [x, y] of [
    ['policy-engine-b', 'policy-controller'],
    ['native', 'kguardian'],
  ]) {
    assert.deepEqual(
      (await policy({ namespace: ns, format: x })).docs,
      (await policy({ namespace: ns, format: y })).docs,
    )
  }
})

check('policies-trust: an unknown format or mode is 400, so is enforce with native', async () => {
  const ns = space()
  for (const params of [
    { format: 'opa' },
    { mode: 'block' },
    { mode: 'Enforce!' },
    { format: 'native', mode: 'enforce' },
    { format: 'kguardian', mode: 'enforce' },
  ]) {
    refused(await s.get('/attestations/policy', { namespace: ns, ...params }), 400)
  }
})

check('policies-trust: enforce denies and pins digests', async () => {
  const ns = space()
  await runs(ns, 'registry.test/pol/enforced')
  const [a] = (await policy({ namespace: ns, mode: 'enforce' })).docs
  assert.deepEqual(a.spec.validationActions, ['Deny'])
  assert.deepEqual(
    [a.spec.validationConfigurations.mutateDigest, a.spec.validationConfigurations.verifyDigest],
    [true, true],
  )
  const [c] = (await policy({ namespace: ns, mode: 'enforce', format: 'policy-engine-b' })).docs
  assert.equal(c.spec.mode, 'enforce')
})

check('policies-trust: policy-engine-b: ClusterImagePolicy', async () => {
  const ns = space()
  await runs(ns, 'registry.test/pol/b')
  const p = await policy({ namespace: ns, format: 'policy-engine-b' })
  assert.equal(p.docs.length, 1)
  const [doc] = p.docs
  assert.deepEqual(
    [doc.apiVersion, doc.kind, doc.spec.mode],
    ['policy.sigstore.dev/v1beta1', 'ClusterImagePolicy', 'warn'],
  )
  assert.deepEqual(doc.spec.images.map((i) => i.glob).sort(), ['registry.test/pol/b:**', 'registry.test/pol/b@**'])
  assert.deepEqual(doc.spec.authorities, [
    { name: 'a0', keyless: { identities: [{ issuer: keylessIdentity.issuer, subject: keylessIdentity.san }] } },
  ])
  assert.ok(p.comments.some((l) => l.includes('policy.sigstore.dev/include=true')))
})

check('policies-trust: native: a namespaced ImageTrustPolicy, or a ClusterImageTrustPolicy', async () => {
  const ns = space()
  await runs(ns, 'registry.test/pol/native')
  const [doc, ...more] = (await policy({ namespace: ns, format: 'native' })).docs
  assert.deepEqual(more, [])
  assert.deepEqual(
    [doc.apiVersion, doc.kind, doc.metadata.namespace],
    ['kguardian.dev/v1alpha1', 'ImageTrustPolicy', ns],
  )
  assert.deepEqual(doc.spec.images, ['registry.test/pol/native'])
  assert.deepEqual(doc.spec.authorities, [
    { name: 'a0', keyless: { issuer: keylessIdentity.issuer, subject: keylessIdentity.san } },
  ])
  const cluster = (await policy({ format: 'native' })).docs
  assert.ok(cluster.length > 0)
  for (const d of cluster) assert.deepEqual([d.kind, d.metadata.namespace], ['ClusterImageTrustPolicy', undefined])
})

check('policies-trust: a key signer becomes its PEM', async () => {
  const ns = space()
  const key = publicKey()
  await runs(ns, 'registry.test/pol/key', {
    signatures: [
      {
        format: 'cosign-bundle',
        verified: true,
        signer_kind: 'key',
        key_name: 'release',
        key_fingerprint: key.fingerprint,
        key_pem: key.pem,
      },
    ],
  })
  const [a] = (await policy({ namespace: ns })).docs
  assert.equal(a.spec.attestors[0].cosign.key.data.trim(), key.pem.trim())
  const [c] = (await policy({ namespace: ns, format: 'policy-engine-b' })).docs
  assert.equal(c.spec.authorities[0].key.data.trim(), key.pem.trim())
  const [n] = (await policy({ namespace: ns, format: 'native' })).docs
  assert.equal(n.spec.authorities[0].key.publicKey.trim(), key.pem.trim())
})

check('policies-trust: a workflow that signed a tag is widened to any tag, nothing else is', async () => {
  const ns = space()
  const workflow = 'https://github.com/team/app/.github/workflows/release.yml'
  await runs(ns, 'registry.test/pol/tagged', {
    signatures: [signature({ issuer: github, san: `${workflow}@refs/tags/v1.2.3` })],
  })
  const [
    {
      spec: {
        attestors: [
          {
            cosign: {
              keyless: {
                identities: [identity],
              },
            },
          },
        ],
      },
    },
  ] = (await policy({ namespace: ns })).docs
  sameKeys(identity, ['issuer', 'subjectRegExp'], 'the identity')
  assert.equal(identity.issuer, github)
  const full = new RegExp(`^(?:${identity.subjectRegExp})$`)
  assert.match(`${workflow}@refs/tags/v9.0.0`, new RegExp(identity.subjectRegExp))
  assert.match(`${workflow}@refs/tags/v1.2.3`, full)
  for (const bad of [
    `${workflow}@refs/heads/main`,
    `${workflow.replace('.yml', 'xyml')}@refs/tags/v1`,
    `${workflow.replace('team', 'evil')}@refs/tags/v1`,
    `https://evil.test/?${workflow}@refs/tags/v1`,
  ]) {
    assert.doesNotMatch(bad, new RegExp(identity.subjectRegExp), `anchored and escaped: ${identity.subjectRegExp}`)
  }
  const other = space()
  await runs(other, 'registry.test/pol/branch', {
    signatures: [signature({ issuer: github, san: `${workflow}@refs/heads/main` })],
  })
  const [doc] = (await policy({ namespace: other })).docs
  assert.deepEqual(doc.spec.attestors[0].cosign.keyless.identities[0], {
    issuer: github,
    subject: `${workflow}@refs/heads/main`,
  })
})

check('policies-trust: provenance that every digest has is required too', async () => {
  const ns = space()
  for (const tag of ['v1', 'v2']) await runs(ns, 'registry.test/pol/slsa', { attestations: [statement()] }, { tag })
  const [a] = (await policy({ namespace: ns })).docs
  assert.deepEqual(a.spec.attestations, [{ name: 'p0', intoto: { type: provenance } }])
  assert.equal(a.spec.validations.length, 6)
  assert.equal(
    a.spec.validations.filter((v) =>
      squeezed(v).includes('verifyAttestationSignatures(image,attestations.p0,[attestors.a0])'),
    ).length,
    3,
  )
  const [c, second] = (await policy({ namespace: ns, format: 'policy-engine-b' })).docs
  assert.equal(second.metadata.name, `${c.metadata.name}-provenance`)
  assert.deepEqual(second.spec.images, c.spec.images)
  assert.equal(c.spec.authorities[0].attestations, undefined)
  assert.equal(second.spec.authorities[0].attestations[0].predicateType, provenance)
  const [n] = (await policy({ namespace: ns, format: 'native' })).docs
  assert.equal(n.spec.attestations[0].predicateType, provenance)
})

check('policies-trust: a repository is covered only when every running digest of it is', async () => {
  const ns = space()
  await runs(ns, 'registry.test/pol/half')
  await runs(ns, 'registry.test/pol/half', { verdict: 'unsigned', signatures: [] }, { tag: 'v2' })
  await runs(ns, 'registry.test/pol/whole', { signatures: [signature({ san: 'https://ci.test/one' })] })
  await runs(ns, 'registry.test/pol/whole', { signatures: [signature({ san: 'https://ci.test/two' })] }, { tag: 'v2' })
  const p = await policy({ namespace: ns })
  assert.equal(p.docs.length, 1)
  assert.ok(p.docs[0].spec.matchImageReferences.every((m) => m.glob.startsWith('registry.test/pol/whole')))
  assert.deepEqual(
    p.docs[0].spec.attestors.map((x) => [x.name, x.cosign.keyless.identities[0].subject]),
    [
      ['a0', 'https://ci.test/one'],
      ['a1', 'https://ci.test/two'],
    ],
    'any of the signers seen',
  )
  assert.ok(squeezed(p.docs[0].spec.validations[0]).includes('[attestors.a0,attestors.a1]'))
  const [line, ...more] = comment(p, 'not covered:')
  assert.deepEqual(more, [])
  assert.match(line, /registry\.test\/pol\/half.*unsigned/)
})

check('policies-trust: enforce with something uncovered is 409 and names it, unless acknowledged', async () => {
  const ns = space()
  await runs(ns, 'registry.test/pol/good')
  await runs(ns, 'registry.test/pol/plain', { verdict: 'unsigned', signatures: [] })
  await runs(ns, 'registry.test/pol/fresh', null)
  await runs(ns, 'registry.test/pol/nopem', {
    signatures: [{ format: 'cosign-bundle', verified: true, signer_kind: 'key', key_fingerprint: 'ab'.repeat(32) }],
  })
  await runs(ns, 'registry.test/pol/broken', {
    verdict: 'invalid',
    reason: 'bad_signature',
    signatures: [unverified('bad_signature')],
  })
  for (const format of ['policy-engine-a', 'policy-engine-b']) {
    const r = refused(
      await s.get('/attestations/policy', { namespace: ns, format, mode: 'enforce' }),
      409,
      /acknowledgePartial=true/,
    )
    for (const words of [
      'registry.test/pol/plain (unsigned)',
      'registry.test/pol/fresh (not checked)',
      'registry.test/pol/broken (invalid)',
      'registry.test/pol/nopem (only a key whose PEM is unknown)',
    ]) {
      assert.ok(r.text.includes(words), `${words} in: ${r.text}`)
    }
    assert.equal(r.text.includes('registry.test/pol/good'), false)
    for (const yes of ['true', '1', 'yes', 'on', 'TRUE', 'On']) {
      const p = await policy({ namespace: ns, format, mode: 'enforce', acknowledgePartial: yes })
      assert.deepEqual([p.docs.length, comment(p, 'not covered:').length], [1, 4], yes)
    }
    for (const no of ['false', '0', 'maybe', ''])
      assert.equal(
        (await s.get('/attestations/policy', { namespace: ns, format, mode: 'enforce', acknowledgePartial: no }))
          .status,
        409,
        no,
      )
  }
  assert.equal((await policy({ namespace: ns })).docs.length, 1, 'audit needs no acknowledgement')
})

check('policies-trust: no covered repository leaves comments only', async () => {
  const ns = space()
  await runs(ns, 'registry.test/pol/nothing', { verdict: 'unsigned', signatures: [] })
  for (const format of ['policy-engine-a', 'policy-engine-b', 'native']) {
    const p = await policy({ namespace: ns, format })
    assert.ok(
      p.lines.every((l) => l.trim() === '' || l.startsWith('#')),
      p.text,
    )
    assert.equal(comment(p, 'not covered:').length, 1)
  }
  assert.deepEqual((await policy({ namespace: `${ns}-empty` })).docs, [])
})

check('policies-trust: repositories with equal signers share one policy, others get their own', async () => {
  const ns = space()
  for (const name of ['zeta', 'alpha']) await runs(ns, `registry.test/shared/${name}`)
  await runs(ns, 'registry.test/shared/apart', { signatures: [signature({ san: 'https://ci.test/apart' })] })
  const { docs } = await policy({ namespace: ns, format: 'native' })
  assert.deepEqual(docs.map((d) => d.spec.images).sort(), [
    ['registry.test/shared/alpha', 'registry.test/shared/zeta'],
    ['registry.test/shared/apart'],
  ])
  assert.equal(new Set(docs.map((d) => d.metadata.name)).size, 2)
  assert.deepEqual(
    (await policy({ namespace: ns, format: 'native' })).docs,
    docs,
    'the same state gives the same policies',
  )
})

check('policies-trust: only running containers of the asked namespace count', async () => {
  const ns = space()
  await runs(ns, 'registry.test/pol/here')
  await runs(`${ns}-x`, 'registry.test/pol/there')
  await s.run(
    pod({
      ns,
      workload: 'done',
      containers: [container(digest(`done-${ns}`), { repository: 'registry.test/pol/done', state: 'terminated' })],
    }),
  )
  const p = await policy({ namespace: ns, format: 'native' })
  assert.deepEqual(
    p.docs.map((d) => d.spec.images),
    [['registry.test/pol/here']],
  )
  assert.equal(p.text.includes('there') || p.text.includes('registry.test/pol/done'), false)
})

check('policies-trust: every spelling of a Docker Hub image is matched', async () => {
  const ns = space()
  await runs(ns, 'docker.io/library/nginx', {}, { image: 'nginx:v1' })
  const globs = (await policy({ namespace: ns })).docs[0].spec.matchImageReferences.map((m) => m.glob)
  for (const name of [
    'nginx',
    'library/nginx',
    'docker.io/nginx',
    'docker.io/library/nginx',
    'index.docker.io/library/nginx',
  ]) {
    for (const end of ['', ':*', '@*']) assert.ok(globs.includes(name + end), `${name}${end} in ${globs}`)
  }
  const [c] = (await policy({ namespace: ns, format: 'policy-engine-b' })).docs
  assert.ok(
    c.spec.images.some((i) => i.glob === 'index.docker.io/library/nginx:**'),
    JSON.stringify(c.spec.images),
  )
})

check('policies-trust: over 5000 running containers is 422 and asks for a namespace', async () => {
  const [big, small] = [space(), space()]
  await runs(small, 'registry.test/pol/small')
  const d = digest('policy-crowd')
  const crowd = Array.from({ length: 79 }, (_, i) =>
    pod({
      ns: big,
      workload: `w${i}`,
      containers: Array.from({ length: 64 }, (_, k) =>
        container(d, { name: `c${k}`, repository: 'registry.test/pol/crowd' }),
      ),
    }),
  )
  for (let i = 0; i < crowd.length; i += 8) await Promise.all(crowd.slice(i, i + 8).map((p) => s.run(p)))
  for (const params of [{}, { namespace: big }, { format: 'native' }])
    refused(await s.get('/attestations/policy', params), 422, /namespace/)
  assert.equal((await policy({ namespace: small })).docs.length, 1)
})

// ---------------------------------------------------------------- image trust

const trustKeys = [
  'available',
  'evaluatedAt',
  'total',
  'wouldDeny',
  'unknown',
  'trusted',
  'policies',
  'results',
  'truncated',
]
const row = (verdict, over = {}) => ({
  policy: 'shop/signed',
  namespace: 'shop',
  workload: 'Deployment/web',
  container: 'app',
  digest: digest('trust'),
  image: 'registry.test/shop/web:v1',
  verdict,
  ...over,
})
const rows = [
  row('Trusted', { container: 'zeta' }),
  row('Unknown', { reason: 'not-checked', policy: 'cluster/all' }),
  row('WouldDeny', { reason: 'unsigned', workload: 'StatefulSet/db' }),
  row('Trusted', { container: 'alpha' }),
  row('WouldDeny', { reason: 'invalid', namespace: 'bank', policy: 'bank/strict', workload: 'Deployment/ledger' }),
]
/** An evaluator that filters as it is asked. */
const evaluator =
  (list, evaluatedAt = '2025-06-07T08:09:10.123456789+02:00') =>
  (url) => {
    const [ns, verdict] = [url.searchParams.get('namespace'), url.searchParams.get('verdict')]
    return {
      json: {
        evaluatedAt,
        results: list.filter((r) => (!ns || r.namespace === ns) && (!verdict || r.verdict === verdict)),
      },
    }
  }
const trust = async (params) => ok(await t.get('/image-trust', params)).json

check('policies-trust: image-trust passes the results on, worst first, with counts and policies', async () => {
  answer = evaluator(rows)
  const r = await trust()
  sameKeys(r, trustKeys, 'the answer')
  assert.deepEqual(
    [r.available, r.evaluatedAt, r.total, r.wouldDeny, r.unknown, r.trusted, r.truncated],
    [true, '2025-06-07T08:09:10.123456789+02:00', 5, 2, 1, 2, false],
  )
  assert.deepEqual(r.policies, ['bank/strict', 'cluster/all', 'shop/signed'])
  assert.deepEqual(r.results, [rows[4], rows[2], rows[1], rows[3], rows[0]])
  assert.equal('reason' in r.results[3], false, 'no reason, no key')
})

check('policies-trust: image-trust before the first pass has evaluatedAt null', async () => {
  answer = evaluator([], null)
  assert.deepEqual(await trust(), {
    available: true,
    evaluatedAt: null,
    total: 0,
    wouldDeny: 0,
    unknown: 0,
    trusted: 0,
    policies: [],
    results: [],
    truncated: false,
  })
})

check('policies-trust: image-trust asks the evaluator with the read token and only namespace and verdict', async () => {
  answer = evaluator(rows)
  stub.seen.length = 0
  await trust({ namespace: 'shop', verdict: 'WouldDeny', workload_kind: 'StatefulSet', workload_name: 'db', limit: 7 })
  await trust()
  const [asked, bare] = stub.seen.filter((r) => r.path === '/image-trust')
  assert.deepEqual(
    [asked.method, asked.query, asked.headers.authorization],
    ['GET', { namespace: 'shop', verdict: 'WouldDeny' }, `Bearer ${tokens.read}`],
  )
  assert.deepEqual(bare.query, {})
})

check(
  'policies-trust: the evaluator gets the legacy shared token when there is no read token, and none with auth off',
  async () => {
    answer = evaluator(rows)
    const shared = 'conformance-legacy-shared-0123456789'
    const [legacy, open] = await Promise.all([
      startBroker({ env: { BROKER_AUTH_TOKEN: shared, EVALUATOR_URL: stub.url } }),
      startBroker({ env: { EVALUATOR_URL: `${stub.url}/` } }),
    ])
    try {
      stub.seen.length = 0
      assert.equal(ok(await legacy.get('/image-trust', { bearer: shared })).json.total, 5)
      assert.equal(ok(await open.get('/image-trust')).json.total, 5)
      assert.deepEqual(
        stub.seen.filter((r) => r.path === '/image-trust').map((r) => r.headers.authorization),
        [`Bearer ${shared}`, undefined],
      )
    } finally {
      await Promise.all([legacy.stop(), open.stop()])
    }
  },
)

check('policies-trust: image-trust filters by namespace, verdict and workload', async () => {
  answer = evaluator(rows)
  const seen = async (params) => {
    const r = await trust(params)
    return [r.results.map((x) => `${x.workload}/${x.container}`), r.total, r.wouldDeny, r.unknown, r.trusted]
  }
  assert.deepEqual(await seen({ namespace: 'bank' }), [['Deployment/ledger/app'], 1, 1, 0, 0])
  assert.deepEqual(await seen({ verdict: 'Unknown' }), [['Deployment/web/app'], 1, 0, 1, 0])
  assert.deepEqual(await seen({ workload_kind: 'statefulSET' }), [['StatefulSet/db/app'], 1, 1, 0, 0])
  assert.deepEqual(await seen({ workload_name: 'web' }), [
    ['Deployment/web/app', 'Deployment/web/alpha', 'Deployment/web/zeta'],
    3,
    0,
    1,
    2,
  ])
  assert.deepEqual(await seen({ workload_name: 'WEB' }), [[], 0, 0, 0, 0])
  assert.deepEqual(await seen({ workload_kind: 'deployment', workload_name: 'ledger' }), [
    ['Deployment/ledger/app'],
    1,
    1,
    0,
    0,
  ])
  assert.deepEqual((await trust({ workload_name: 'ledger' })).policies, ['bank/strict'])
})

check('policies-trust: an unknown verdict or a bad limit is 400', async () => {
  answer = evaluator(rows)
  for (const params of [{ verdict: 'Denied' }, { verdict: 'trusted' }, { limit: 'all' }])
    refused(await t.get('/image-trust', params), 400)
})

check('policies-trust: limit cuts the list, not the counts', async () => {
  answer = evaluator(
    Array.from({ length: 2_100 }, (_, i) =>
      row(['Trusted', 'WouldDeny', 'Unknown'][i % 3], {
        container: `c${String(i).padStart(4, '0')}`,
        policy: `shop/p${i % 4}`,
      }),
    ),
  )
  for (const [limit, size] of [
    [undefined, 200],
    [0, 1],
    [1, 1],
    [2_000, 2_000],
    [2_001, 2_000],
  ]) {
    const r = await trust({ limit })
    assert.deepEqual(
      [r.results.length, r.truncated, r.total, r.wouldDeny, r.unknown, r.trusted, r.policies.length],
      [size, true, 2_100, 700, 700, 700, 4],
      `limit ${limit}`,
    )
  }
  assert.ok(
    (await trust()).results.every((r) => r.verdict === 'WouldDeny'),
    'the worst are kept',
  )
})

const unavailable = (r) => {
  sameKeys(r, [...trustKeys, 'reason'], 'the answer')
  assert.equal(r.available, false)
  assert.ok(typeof r.reason === 'string' && r.reason.trim().length > 0)
  assert.doesNotMatch(r.reason, /127\.0\.0\.1|localhost|https?:|ECONN|at .*\.js/i, 'the reason is a fixed phrase')
  assert.deepEqual(
    [r.total, r.wouldDeny, r.unknown, r.trusted, r.results, r.policies, r.truncated, r.evaluatedAt],
    [0, 0, 0, 0, [], [], false, null],
  )
  return r.reason
}

check('policies-trust: image-trust is unavailable, with a reason, without an evaluator', async () => {
  unavailable(ok(await s.get('/image-trust')).json)
  refused(await s.get('/image-trust', { verdict: 'Denied' }), 400)
})

check(
  'policies-trust: image-trust is unavailable when the evaluator has it off, refuses the token, fails or answers nonsense',
  async () => {
    const reasons = []
    for (const out of [
      { status: 404, text: 'off' },
      { status: 401, text: 'no' },
      { status: 403, text: 'no' },
      { status: 500, text: 'secret-of-the-evaluator' },
      { status: 503, text: '' },
      { text: 'not json' },
      { json: [] },
      { json: { results: 'x' } },
      'reset',
    ]) {
      answer = () => out
      reasons.push(unavailable(await trust()))
    }
    assert.equal(
      reasons.some((r) => r.includes('secret-of-the-evaluator')),
      false,
    )
    assert.equal(new Set(reasons.slice(0, 2)).size, 2, 'off and refused are told apart')
  },
)

check('policies-trust: image-trust is unavailable when the answer exceeds 16 MiB', async () => {
  answer = () => ({ json: { evaluatedAt: null, results: [], filler: 'x'.repeat(16_777_216) } })
  unavailable(await trust())
})

check('policies-trust: image-trust is unavailable when the evaluator does not answer', async () => {
  answer = () => 'hang'
  unavailable(await trust())
})

check(
  'policies-trust: image-trust is unavailable when the evaluator cannot be reached, and back when it can',
  async () => {
    const gone = await stubServer(() => ({ json: {} }))
    await gone.close()
    const far = await startBroker({ env: { ...authEnv, EVALUATOR_URL: gone.url } })
    try {
      unavailable(ok(await session(far).get('/image-trust')).json)
    } finally {
      await far.stop()
    }
    answer = evaluator(rows)
    assert.equal((await trust()).available, true)
  },
)
