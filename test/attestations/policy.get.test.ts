import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp } from '../support/app.ts'
import { signature, statement, storeAttestation } from '../support/attestations.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { commentsOf, readPolicies } from '../support/policies.ts'

const app = await startApp()

test('GET /attestations/policy 200: smoke', async () => {
  const namespace = newNamespace()
  const d = newDigest()
  assert.equal((await app.post('/pod/spec', replica(namespace, [container('app', d, { repository: 'docker.io/library/nginx', image: 'nginx:v1' })]))).status, 200)
  await storeAttestation(app, d, { signatures: [signature(), signature({ signerKind: 'key', issuer: undefined, san: undefined, keyFingerprint: 'ab', keyPem: '-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----' }), signature({ san: 'https://github.com/team/app/.github/workflows/release.yml@refs/tags/v1' })], attestations: [statement()] })
  for (const f of ['kyverno', 'policy-controller', 'native']) {
    const a = await app.get(`/attestations/policy?namespace=${namespace}&format=${f}`)
    assert.equal(a.status, 200, a.text)
    console.log(a.text)
    readPolicies(a.text)
    commentsOf(a.text)
  }
})
