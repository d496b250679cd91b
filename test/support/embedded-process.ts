/**
 * Another process of the same installation. With a data folder as its argument it prints
 * `{ pid, attached }` when its server is up, and stops when its standard input ends.
 */
import { once } from 'node:events'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { noLog } from './log.ts'

const server = await startEmbedded({ dataDir: process.argv[2]!, log: noLog })
process.stdout.write(`${JSON.stringify({ pid: server.pid, attached: server.attached })}\n`)
process.stdin.resume()
await once(process.stdin, 'end')
await server.stop()
