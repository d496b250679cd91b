import http from 'node:http'
import type { AddressInfo } from 'node:net'

/** Percentages of evaluations that are refused, and that are never answered. */
const REFUSED = 2
const SILENT = 1
const SLOWEST_MS = 200

/** An evaluator that allows most flows; some evaluations are refused or not answered. */
export async function startEvaluator() {
  let asked = 0
  const server = http.createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => {
      asked++
      const luck = Math.random() * 100
      if (luck < SILENT) return
      outgoing.statusCode = luck < SILENT + REFUSED ? 500 : 200
      const coverage = incoming.url!.startsWith('/policy-coverage')
      const results = [
        { policyNamespace: 'storm', policyName: 'all', policyUID: 'p', direction: 'Egress', verdict: 'Allow' },
      ]
      const answer = JSON.stringify(coverage ? { cause: 'no-policy' } : { results })
      setTimeout(
        () => outgoing.setHeader('content-type', 'application/json').end(answer),
        Math.random() ** 4 * SLOWEST_MS,
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get asked() {
      return asked
    },
    close() {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
