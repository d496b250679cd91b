/** Decisions about vulnerabilities, for tests. */
import assert from 'node:assert/strict'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { type Answer, type startApp, TOKENS } from './app.ts'
import { container, newDigest, newNamespace, replica } from './images.ts'
import { finding, storeFindings } from './supply-chain.ts'

type App = Awaited<ReturnType<typeof startApp>>
type Fields = Record<string, unknown>

export const SUPPLYCHAIN = TOKENS.BROKER_TOKEN_SUPPLYCHAIN
export const READ = TOKENS.BROKER_TOKEN_READ

/** A body of PUT /vulnerabilities/{id}/decision. */
export const decision = (fields: Fields = {}): Fields => ({
  scope: { type: 'all' },
  decision: 'accepted',
  by: 'team-a',
  why: 'the port is closed',
  ...fields,
})

export const put = (app: App, id: string, body: unknown, token = SUPPLYCHAIN): Promise<Answer> =>
  app.request('PUT', `/vulnerabilities/${id}/decision`, { body, token })

/** Puts a decision, which has to be stored. Resolves to it. */
export async function decide(app: App, id: string, fields: Fields = {}) {
  const answer = await put(app, id, decision(fields))
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.json.status, fields.decision === null ? 'withdrawn' : 'stored', answer.text)
  return answer.json.decision
}

export const refresh = (app: App) =>
  supplyChainRefresh.run({
    ...{ config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal },
  })

let made = 0
export const newCve = () => `CVE-2032-${10_000 + made++}`

/** A Deployment `web` in a namespace of its own that runs an image with one vulnerability. */
export async function affected(app: App, fields: Fields = {}) {
  const [namespace, digest, id] = [newNamespace(), newDigest(), newCve()]
  const post = await app.post('/pod/spec', replica(namespace, [container('app', digest)]), {
    token: TOKENS.BROKER_TOKEN_INGEST,
  })
  assert.equal(post.status, 200, post.text)
  await storeFindings(app, digest, 'registry', [finding(id, fields)])
  return { namespace, digest, id }
}

export const workload = (namespace: string, name = 'web', kind = 'Deployment') => ({
  type: 'workload',
  namespace,
  kind,
  name,
})

/** The findings of an image. */
export async function findingsOf(app: App, digest: string, query = '') {
  const answer = await app.get(`/images/${digest}/vulnerabilities?limit=500&${query}`, { token: READ })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.items
}

/** The row of a vulnerability in the list. */
export async function listed(app: App, id: string, query = '') {
  const answer = await app.get(`/vulnerabilities?vuln_id=${id}&${query}`, { token: READ })
  assert.equal(answer.status, 200, answer.text)
  return answer.json.items[0]
}
