/**
 * Runs a page against a live broker: the blocks `sh run` in order, comparing their output. A block `sh start` is `npm
 * start` with variables before it; it restarts the broker with them on the same database. Without one the broker starts
 * with its defaults.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Broker, startBroker } from '../support/broker.ts'
import { createTestDatabase } from '../support/database.ts'
import { onlyFull } from '../support/depth.ts'
import { freePort } from '../support/free-port.ts'
import { type Block, blocksOf, commandsOf } from './document.ts'
import { type Shell, startShell } from './shell.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const START_LIMIT_MS = 900_000

export interface WalkOptions {
  /** Variables of the broker besides those of the page. */
  env?: NodeJS.ProcessEnv
  /** Runs before a section, by its heading. */
  arrange?: Readonly<Record<string, (broker: Broker, databaseUrl: string) => Promise<void>>>
  /** Checks after the whole page, by title. */
  finally?: Readonly<Record<string, (broker: Broker) => Promise<void>>>
  /** Whether only the full checks run it. */
  isFullOnly?: boolean
}

/** The variables of a block `sh start`. */
function told({ text, line }: Block): Record<string, string> {
  const words = text.replace(/\\\n/g, ' ').trim().split(/\s+/)
  assert.deepEqual(words.splice(-2), ['npm', 'start'], `line ${line}`)
  return Object.fromEntries(words.map((word) => /^(\w+)=(\S+)$/.exec(word)!.slice(1) as [string, string]))
}

/** Registers a test for each block of the page, whose path is relative to the checkout. */
export function walk(page: string, options: WalkOptions = {}): void {
  const { env = {}, arrange = {}, finally: checks = {}, isFullOnly = false } = options
  let shell: Shell
  let broker: Broker | undefined
  let start: (variables: NodeJS.ProcessEnv) => Promise<void>
  let port: number
  let databaseUrl: string
  const run = (text: string) => shell.run(text.replaceAll('localhost:9090', `localhost:${port}`))

  describe(page, { timeout: START_LIMIT_MS, skip: isFullOnly && onlyFull }, () => {
    before(async () => {
      databaseUrl = (await createTestDatabase()).url
      port = await freePort()
      start = async (variables) => {
        await broker?.stop()
        broker = await startBroker({ databaseUrl, env: { ...env, ...variables, LISTEN_ADDR: `127.0.0.1:${port}` } })
      }
      shell = startShell(ROOT, { PATH: process.env.PATH, HOME: process.env.HOME })
    })

    let section = ''
    /** The reason to skip the remaining blocks. */
    let stuck: string | undefined
    for (const block of blocksOf(readFileSync(join(ROOT, page), 'utf8'))) {
      const isStart = block.tags.includes('start')
      if (!isStart && !block.tags.includes('run')) continue
      test(`line ${block.line}, ${block.section}: ${commandsOf(block)[0]}`, async (t) => {
        if (stuck) return t.skip(stuck)
        stuck = `the block of line ${block.line} failed`
        if (!broker && !isStart) await start({})
        if (block.section !== section) await arrange[block.section]?.(broker!, databaseUrl)
        section = block.section
        if (isStart) await start(told(block))
        else assert.equal(await run(block.text), block.output)
        stuck = undefined
      })
    }
    for (const [what, check] of Object.entries(checks)) test(what, (t) => (stuck ? t.skip(stuck) : check(broker!)))
  })
}
