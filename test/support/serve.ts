/**
 * The database server of a whole test run, for scripts/test.mjs: prints where it is as one line of JSON and stops when
 * its standard input ends, which is also how a killed parent looks.
 */
import { startTestServer } from './server.ts'

process.stdin.resume()
const isOver = new Promise((resolve) => process.stdin.once('close', resolve).once('end', resolve))

const server = await startTestServer(process.env.DATABASE_URL)
process.stdout.write(`${JSON.stringify({ url: server.url, template: server.template })}\n`)
await isOver
await server.stop()
process.exit(0)
