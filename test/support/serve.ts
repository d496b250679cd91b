/**
 * The database server of a test run, for scripts/test.mjs: prints its address as one line of JSON and stops when
 * its standard input ends, which also happens when the parent is killed.
 */
import { startTestServer } from './server.ts'

process.stdin.resume()
const isOver = new Promise((resolve) => process.stdin.once('close', resolve).once('end', resolve))

const server = await startTestServer(process.env.DATABASE_URL)
process.stdout.write(`${JSON.stringify({ url: server.url, template: server.template })}\n`)
await isOver
await server.stop()
process.exit(0)
