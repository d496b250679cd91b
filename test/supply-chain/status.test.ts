/** The status of a finding: the words of Trivy and Grype, and which one is shown where sources differ. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { STATUSES } from '../../lib/supply-chain/status.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { newDigest } from '../support/images.ts'

const app = await startApp(TOKENS)
type Fields = Record<string, unknown>

let hours = 0
async function post(digest: string, source: string, findings: Fields[]): Promise<string> {
  const answer = await app.post(
    `/images/${digest}/vulnerabilities`,
    {
      ...{
        schema_version: 1,
        source,
        image: { digest },
        scanned_at: new Date(Date.UTC(2026, 0, 1, ++hours)).toISOString(),
      },
      vulnerabilities: findings.map((one) => ({ id: 'CVE-2033-1', package: { name: 'curl', version: '1' }, ...one })),
    },
    { token: TOKENS.BROKER_TOKEN_SUPPLYCHAIN },
  )
  assert.equal(answer.status, 200, answer.text)
  return answer.json.status
}
async function shown(digest: string): Promise<(string | null)[]> {
  const { json } = await app.get(`/images/${digest}/vulnerabilities`, { token: TOKENS.BROKER_TOKEN_READ })
  return json.items.map((one: { status: string | null }) => one.status)
}

test('the words of Trivy and of Grype, in any case; any other word says nothing', async () => {
  const words: [unknown, string | null][] = [
    ...STATUSES.map((word): [string, string] => [word, word]),
    ['not-fixed', 'affected'],
    ['wont-fix', 'will_not_fix'],
    [' Fix_Deferred ', 'fix_deferred'],
    ...['', 'toString', 'fixed?', undefined, null].map((word): [unknown, null] => [word, null]),
  ]
  for (const [status, expected] of words) {
    const digest = newDigest()
    await post(digest, 'registry', [{ status }])
    assert.deepEqual(await shown(digest), [expected], String(status))
  }
})

test('where sources differ, or a payload repeats a finding, the least reassuring is shown', async () => {
  const digest = newDigest()
  await post(digest, 'grype', [{ status: 'fixed' }])
  await post(digest, 'trivy-operator', [{}])
  assert.deepEqual(await shown(digest), ['fixed'])
  await post(digest, 'registry', [{ status: 'not_affected' }, { status: 'end_of_life' }, { status: 'unknown' }])
  assert.deepEqual(await shown(digest), ['end_of_life'])
})

test('a payload without it is the same as before it existed; with another one it replaces', async () => {
  const digest = newDigest()
  await post(digest, 'registry', [{}])
  assert.equal(await post(digest, 'registry', [{ status: null }]), 'unchanged')
  assert.equal(await post(digest, 'registry', [{ status: 'affected' }]), 'stored')
  assert.equal(await post(digest, 'registry', [{ status: 'fixed' }]), 'stored')
  assert.deepEqual(await shown(digest), ['fixed'])
})

test('it is kept when a finding is renamed by an alias', async () => {
  const [one, other] = [newDigest(), newDigest()]
  await post(one, 'registry', [{ id: 'CVE-2033-7', aliases: ['GHSA-2033-aaaa-7777'] }])
  await post(other, 'registry', [
    { id: 'GHSA-2033-aaaa-7777', status: 'fixed' },
    { id: 'CVE-2033-7', status: 'affected' },
  ])
  assert.deepEqual(await shown(other), ['affected'])
})

test('400 for a status that is no text', async () => {
  const digest = newDigest()
  const answer = await app.post(
    `/images/${digest}/vulnerabilities`,
    {
      ...{ schema_version: 1, source: 'registry', image: { digest }, scanned_at: '2026-01-01T00:00:00Z' },
      vulnerabilities: [{ id: 'CVE-1', package: { name: 'a' }, status: 1 }],
    },
    { token: TOKENS.BROKER_TOKEN_SUPPLYCHAIN },
  )
  assert.deepEqual([answer.status, answer.text.includes('vulnerabilities[0].status')], [400, true])
})
