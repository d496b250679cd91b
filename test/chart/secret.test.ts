/**
 * The chart looks up the secret with the tokens in the cluster when it is installed; here a stub of the Kubernetes API
 * answers.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { CHART } from '../../scripts/chart-values.ts'
import { skip } from '../support/helm.ts'
import { startStub } from '../support/stub.ts'

const VALUES = ['image.yaml', 'toggles/supplychain.yaml'].flatMap((name) => [
  '--values',
  fileURLToPath(new URL(name, import.meta.url)),
])
const SECRET = '/api/v1/namespaces/telemetry/secrets/broker-tokens'
const RESOURCES = {
  kind: 'APIResourceList',
  groupVersion: 'v1',
  resources: [{ name: 'secrets', singularName: 'secret', namespaced: true, kind: 'Secret', verbs: ['get'] }],
}

/** The output of helm for an install into a cluster whose secret has these keys; null: without that secret. */
async function install(keys: readonly string[] | null): Promise<string> {
  const stub = await startStub(({ path }) => {
    if (path === '/api/v1') return { json: RESOURCES }
    if (path !== SECRET || keys === null)
      return {
        status: 404,
        json: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 },
      }
    const data = Object.fromEntries(keys.map((key) => [key, Buffer.from(`a-token-of-${key}`).toString('base64')]))
    return {
      json: { kind: 'Secret', apiVersion: 'v1', metadata: { name: 'broker-tokens', namespace: 'telemetry' }, data },
    }
  })
  const args = [
    'template',
    'kguardian',
    fileURLToPath(CHART),
    '--namespace',
    'telemetry',
    '--kube-version',
    '1.34.0',
    ...VALUES,
  ]
  const said = await promisify(execFile)(process.env.HELM!, [
    ...args,
    '--dry-run=server',
    '--kube-apiserver',
    stub.url,
  ]).then(
    () => 'rendered',
    ({ stderr }: { stderr: string }) => stderr,
  )
  assert.ok(stub.heard.some(({ path }) => path === SECRET))
  return said
}

test('a secret without the token of the supply-chain component is refused', { skip }, async () => {
  const said = await install(['read', 'ingest'])
  assert.match(
    said,
    /supplychain\.enabled needs the key supplychain in the secret broker-tokens, the token of the component\./,
  )
})

test('a secret with this token is accepted', { skip }, async () => {
  assert.equal(await install(['read', 'ingest', 'supplychain']), 'rendered')
})

test('an install without the secret is accepted, since it may be created later', { skip }, async () => {
  assert.equal(await install(null), 'rendered')
})
