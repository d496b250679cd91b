// The health check of the image: asks the admin port of this container for a path, `/livez` unless one is given. Exit code 0 or 1.
// `ADMIN_ADDR` says where that is, for the broker and the edge proxy alike; what it may be is checked by the program that listens there.
import http from 'node:http'

const DEFAULT_ADMIN_ADDR = '127.0.0.1:9091'
const ANSWER_MS = 4_000

const [, v6, name, port] = /^(?:\[(.*)\]|(.*)):(\d+)$/.exec(process.env.ADMIN_ADDR?.trim() || DEFAULT_ADMIN_ADDR) ?? []
const path = process.argv[2] ?? '/livez'

function end(isUp, words) {
  process.stdout.write(`${name ?? `[${v6}]`}:${port}${path}: ${words}\n`)
  process.exit(isUp ? 0 : 1)
}

// Linux takes an address that stands for all of them, such as 0.0.0.0, for its own.
http
  .get({ host: v6 ?? name, port, path, timeout: ANSWER_MS }, ({ statusCode }) => end(statusCode === 200, statusCode))
  .on('timeout', () => end(false, `no answer within ${ANSWER_MS} ms`))
  .on('error', (error) => end(false, error.message))
