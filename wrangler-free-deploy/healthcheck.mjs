// The health check of the image: requests a path (default `/livez`) from the admin port of this container. Exit code 0
// or 1. `ADMIN_ADDR` is the address, as for the broker and the edge proxy; the listening program validates it.
import http from 'node:http'

const DEFAULT_ADMIN_ADDR = '127.0.0.1:9091'
const ANSWER_MS = 4_000

const [, v6, name, port] = /^(?:\[(.*)\]|(.*)):(\d+)$/.exec(process.env.ADMIN_ADDR?.trim() || DEFAULT_ADMIN_ADDR) ?? []
const path = process.argv[2] ?? '/livez'

function end(isUp, words) {
  process.stdout.write(`${name ?? `[${v6}]`}:${port}${path}: ${words}\n`)
  process.exit(isUp ? 0 : 1)
}

// On Linux, a connection to an unspecified address such as 0.0.0.0 reaches the local host.
http
  .get({ host: v6 ?? name, port, path, timeout: ANSWER_MS }, ({ statusCode }) => end(statusCode === 200, statusCode))
  .on('timeout', () => end(false, `no answer within ${ANSWER_MS} ms`))
  .on('error', (error) => end(false, error.message))
