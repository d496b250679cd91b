/** After a lost answer of the database the statement is repeated; a payload stored by the first attempt is `stored`. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TOKENS } from '../support/app.ts'
import { type LossyApp, startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { bodyOf, imageOf, pageOf, rowsOf, scannedAt, storedVersions, type Version } from './supply-chain.ts'

const FINDINGS = 'select store_findings'
const SBOM = 'select store_sbom'
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3
const PAGES = 3
const PER_PAGE = 10

const lossy = await startLossyApp({}, TOKENS)

let images = 0
const newVersion = (kind: Version['kind']): Version => ({ kind, image: images++, version: 1 })

async function post(
  app: LossyApp,
  { kind, image }: Version,
  body: object,
): Promise<{ status: number; json: unknown; text: string }> {
  const { status, text } = await app.post(`/images/${imageOf(image)}/${kind}`, body, TOKENS.BROKER_TOKEN_SUPPLYCHAIN)
  return { status, text, json: status < 300 ? JSON.parse(text) : null }
}

/** Posts, and fails if a fault was not used. */
async function answer(sent: Version, body: object, fates: Fate[]): Promise<unknown> {
  lossy.lose(sent.kind === 'sbom' ? SBOM : FINDINGS, ...fates)
  const { status, json, text } = await post(lossy, sent, body)
  assert.equal(lossy.toCome, 0, 'every fault has struck')
  assert.ok(status < 300, text)
  return json
}

const stored = (items: number) => ({ status: 'stored', items })
/** Two statements for each payload: one asks whether its rows are needed, the other stores them. */
const FATES: [what: string, fates: Fate[]][] = [
  ['that rows are needed is lost', ['answer lost']],
  ['that it is stored is lost', ['answered', 'answer lost']],
  ['that it is stored is lost twice', ['answered', 'answer lost', 'answer lost']],
  ['is lost several times, and a statement once', ['answer lost', 'answered', 'question lost', 'answer lost']],
]

for (const kind of ['vulnerabilities', 'sbom'] as const) {
  describe(`the answer about ${kind}`, { timeout: 900_000 }, () => {
    for (const [what, fates] of FATES) {
      test(`${what}: the payload is stored, and a repeat is unchanged`, async () => {
        const sent = newVersion(kind)
        assert.deepEqual(await answer(sent, bodyOf(sent), [...fates]), stored(rowsOf(1)))
        assert.deepEqual(await answer(sent, bodyOf(sent), []), { status: 'unchanged' })

        const newer = { ...sent, version: 2 }
        assert.deepEqual(await answer(newer, bodyOf(newer), [...fates]), stored(rowsOf(2)))
        const found = await storedVersions(lossy.sql)
        assert.equal(found.get(`${kind} ${imageOf(sent.image)}`)?.version, 2)
      })
    }

    test('that it is unchanged or stale is lost: the client still gets it', async () => {
      const sent = newVersion(kind)
      const newer = { ...sent, version: 2 }
      await answer(newer, bodyOf(newer), [])
      assert.deepEqual(await answer(newer, bodyOf(newer), ['answer lost', 'answer lost']), { status: 'unchanged' })
      assert.deepEqual(await answer(sent, bodyOf(sent), ['answer lost', 'answer lost']), {
        status: 'stale',
        stored_scanned_at: scannedAt(2).slice(0, 19),
      })
    })

    test('is lost in all attempts: 503, and a repeat is unchanged', async () => {
      const sent = newVersion(kind)
      lossy.lose(kind === 'sbom' ? SBOM : FINDINGS, 'answered', ...Array<Fate>(ATTEMPTS).fill('answer lost'))
      const { status, text } = await post(lossy, sent, bodyOf(sent))
      assert.equal(status, 503, text)
      assert.equal(lossy.toCome, 0)
      assert.deepEqual(await answer(sent, bodyOf(sent), []), { status: 'unchanged' })
    })
  })
}

describe('the answer about a page', { timeout: 900_000 }, () => {
  const page = (sent: Version, index: number) => pageOf(sent, index, PAGES, PER_PAGE)

  for (const [what, fates] of FATES) {
    test(`${what}: each page is staged once, and the last one stores the set`, async () => {
      const sent = newVersion('sbom')
      for (let index = 0; index < PAGES - 1; index++) {
        assert.deepEqual(await answer(sent, page(sent, index), [...fates]), {
          status: 'staged',
          received: index + 1,
          total: PAGES,
        })
      }
      assert.deepEqual(await answer(sent, page(sent, PAGES - 1), [...fates]), stored(PAGES * PER_PAGE))
      assert.equal((await storedVersions(lossy.sql)).get(`sbom ${imageOf(sent.image)}`)?.rows, PAGES * PER_PAGE)
      assert.deepEqual(await answer(sent, page(sent, 0), []), { status: 'unchanged' })
    })
  }

  test('that it is a duplicate is lost: the client still gets it', async () => {
    const sent = newVersion('sbom')
    await answer(sent, page(sent, 0), [])
    assert.deepEqual(await answer(sent, page(sent, 0), ['answer lost', 'answer lost']), {
      status: 'duplicate_page',
      received: 1,
      total: PAGES,
    })
  })
})
