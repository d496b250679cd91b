/** The pages of an SBOM in any order, from several senders at once, through two replicas (docs/contract.md#sbom). */
import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, describe, test } from 'node:test'
import { TOKENS } from '../support/app.ts'
import { type Broker, type Reply, startBroker } from '../support/broker.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import { imageOf, pageOf, postPayload, storedVersions } from './supply-chain.ts'

const CLIENTS = 4
const ROUNDS = depth(2, 10)
const PAGES = 9
const PER_PAGE = 25

let database: TestDatabase
let replicas: Broker[]
const agents = Array.from({ length: CLIENTS }, () => new http.Agent({ keepAlive: true, maxSockets: 2 }))

before(async () => {
  database = await createTestDatabase()
  const start = () => startBroker({ databaseUrl: database.url, env: TOKENS })
  replicas = await Promise.all([start(), start()])
})
after(() => {
  for (const agent of agents) agent.destroy()
})

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((one) => ({ one, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)

interface Answer {
  readonly version: number
  readonly reply: Reply
}

/** Posts every page of each version once, in random order, to either replica at random. */
async function send(client: number, image: number, versions: readonly number[]): Promise<Answer[]> {
  const answers: Answer[] = []
  const all = versions.flatMap((version) => Array.from({ length: PAGES }, (_, index) => ({ version, index })))
  for (const { version, index } of shuffled(all)) {
    const replica = replicas[Math.floor(Math.random() * replicas.length)]!
    const page = pageOf({ kind: 'sbom', image, version }, index, PAGES, PER_PAGE)
    const reply = await postPayload(replica, 'sbom', image, page, agents[client])
    assert.ok(reply.status === 200 || reply.status === 202, reply.text)
    assert.equal(reply.status === 202, reply.json.status === 'staged', reply.text)
    answers.push({ version, reply })
  }
  return answers
}

const told = (answers: readonly Answer[], status: string) => answers.filter(({ reply }) => reply.json.status === status)

/** The SBOM of an image is this version, whole and in order, and no page is left. */
async function assertStored(image: number, version: number): Promise<void> {
  const components = await database.adminSql<{ position: string; name: string; version: string }[]>`
    select position, name, version from image_component where digest = ${imageOf(image)} order by position`
  assert.deepEqual(
    components.map((one) => ({ ...one })),
    Array.from({ length: PAGES * PER_PAGE }, (_, n) => ({
      position: String(n + 1),
      name: `component-${n}`,
      version: String(version),
    })),
  )
  assert.equal((await storedVersions(database.adminSql)).size, image)
  assert.deepEqual([...(await database.adminSql`select digest, set_id, page_index from sbom_page`)], [])
}

let images = 0

describe('a set of pages that four clients post at once in random order through two replicas', {
  timeout: 900_000,
}, () => {
  test('is stored once, whole and in order, and exactly one answer is `stored`', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const image = ++images
      const answers = (await Promise.all(agents.map((_, client) => send(client, image, [1])))).flat()
      assert.equal(told(answers, 'stored').length, 1)
      assert.equal(told(answers, 'stored')[0]!.reply.json.items, PAGES * PER_PAGE)
      assert.equal(told(answers, 'staged').length, PAGES - 1)
      assert.deepEqual(
        told(answers, 'staged')
          .map(({ reply }) => reply.json.received)
          .sort((a, b) => a - b),
        Array.from({ length: PAGES - 1 }, (_, n) => n + 1),
      )
      assert.equal(told(answers, 'duplicate_page').length + told(answers, 'unchanged').length, (CLIENTS - 1) * PAGES)
      await assertStored(image, 1)
    }
  })

  test('together with the pages of an older set: the newer set is stored once, and the older one never after it', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const image = ++images
      const answers = (await Promise.all(agents.map((_, client) => send(client, image, [1, 2])))).flat()
      const stored = told(answers, 'stored')
      assert.equal(stored.filter(({ version }) => version === 2).length, 1)
      assert.ok(stored.filter(({ version }) => version === 1).length <= 1)
      for (const { version } of told(answers, 'stale')) assert.equal(version, 1)
      await assertStored(image, 2)
    }
  })
})
