/**
 * A process of its own, like the kubelet: probes every target each 250 ms on a new connection, and reports each answer
 * to its parent. Its arguments are pairs of name and URL. Without arguments it is the control: a target that answers at
 * once, whose delays are those of the machine.
 */
import http from 'node:http'
import type { AddressInfo } from 'node:net'

const EVERY_MS = 250
const TIMEOUT_MS = 30_000

export interface Sample {
  target: string
  /** Time in milliseconds. */
  from: number
  to: number
  status: number
}

function ask(target: string, url: string): void {
  const from = Date.now()
  let done = false
  const finish = (status: number) => {
    if (done) return
    done = true
    process.send!({ target, from, to: Date.now(), status } satisfies Sample)
  }
  const outgoing = http.get(url, { agent: false, timeout: TIMEOUT_MS }, (incoming) => {
    incoming.resume().on('end', () => finish(incoming.statusCode!))
    incoming.on('error', () => finish(0))
  })
  outgoing.on('timeout', () => outgoing.destroy())
  outgoing.on('error', () => finish(0))
  outgoing.on('close', () => finish(0))
}

const targets = process.argv.slice(2)
process.on('disconnect', () => process.exit(0))
if (targets.length === 0) {
  const server = http
    .createServer((_, outgoing) => outgoing.end('ok'))
    .listen(0, '127.0.0.1', () => {
      process.send!((server.address() as AddressInfo).port)
    })
} else {
  setInterval(() => {
    for (let i = 0; i < targets.length; i += 2) ask(targets[i]!, targets[i + 1]!)
  }, EVERY_MS)
}
