/**
 * Runs a broker with a seeded cluster: `npx tsx test/console/support/demo.ts`. It prints its address and runs until
 * SIGTERM or SIGINT. npx does not forward SIGTERM, so scripts start it with `node --import tsx`. Build first (`npm run
 * build`). Options: `--port N`; `--seed cluster|pods|hostile`; `--tokens` to ask for tokens, which it prints; `--data
 * DIR` to keep the database there, so that the next start takes seconds. In a kept database nodes stay live, but flows,
 * findings and charts are as old as the seed; delete the folder for new data.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../../../lib/db/embedded/index.ts'
import { openPool } from '../../../lib/db/open-pool.ts'
import { migrate } from '../../../sql/migrate/index.ts'
import { noLog } from '../../support/log.ts'
import { forgoDurability } from '../../support/server.ts'
import { startConsoleBroker, TOKENS } from './broker.ts'
import { freshen } from './fresh.ts'
import { isSeed, SEEDS } from './seed.ts'

const FRESHEN_MS = 60_000

const print = (line: string) => process.stdout.write(`${line}\n`)

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    seed: { type: 'string', default: 'cluster' },
    data: { type: 'string' },
    tokens: { type: 'boolean', default: false },
  },
})
const { seed } = values
if (!isSeed(seed)) throw new Error(`--seed: expected one of ${Object.keys(SEEDS).join(', ')}`)
const dataDir = values.data === undefined ? mkdtempSync(join(tmpdir(), 'console-demo-')) : resolve(values.data)
const marker = join(dataDir, `seeded-${seed}`)

const stopping = new Promise<void>((stop) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop())
})
const server = await startEmbedded({ dataDir, log: noLog })
try {
  await forgoDurability(server.url)
  await migrate({ connection: server.options, log: noLog })
  if (!existsSync(marker)) {
    const startedAt = performance.now()
    print('seeding ...')
    await SEEDS[seed](server.options)
    writeFileSync(marker, new Date().toISOString())
    print(`seeded in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  }
  const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  await freshen(sql)
  const { tokens } = values
  const broker = await startConsoleBroker({ databaseUrl: server.url, port: Number(values.port), tokens })
  if (tokens) print(`the token for reading is ${TOKENS.BROKER_TOKEN_READ}`)
  print(`${broker.url}/console/`)
  const timer = setInterval(() => void freshen(sql).catch(() => {}), FRESHEN_MS)
  await stopping
  clearInterval(timer)
  await broker.stop()
  await sql.end({ timeout: 1 })
} finally {
  await server.stop()
  if (values.data === undefined) rmSync(dataDir, { recursive: true, force: true })
}
