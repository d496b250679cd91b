import http from 'node:http'
import type { Attack } from '../../bench/hostile-bodies.ts'
import type { Broker } from './broker.ts'
import type { Client } from './client.ts'

const TIMEOUT_MS = 30_000
const RIGHT = { refused: /^4\d\d$/, valid: /^200$/, either: /^(200|4\d\d)$/ }

/** Sends the bodies at once; each is refused, or stored if it is valid, or has no answer. */
export async function hostile(
  client: Client,
  broker: Broker,
  attack: Attack,
  bodies: Buffer[],
  gzip: boolean,
): Promise<void> {
  await Promise.all(
    bodies.map(async (body) => {
      const startedAt = Date.now()
      const { status, text, requestId, retryAfterMs } = await post(broker.port, attack.path, body, gzip)
      client.judge(
        { status, text, requestId, retryAfterMs, broker: broker.name, startedAt },
        'POST',
        attack.path,
        false,
      )
      if (status === 0 || status >= 500 || RIGHT[attack.expected].test(String(status))) return
      const detail = `${attack.name} to ${broker.name}: ${status} ${text.slice(0, 200)}, request ${requestId}`
      client.record.violation('what is wrong is refused, what is right is not', detail, startedAt)
    }),
  )
}

function post(port: number, path: string, body: Buffer, gzip: boolean) {
  return new Promise<{ status: number; text: string; requestId: string; retryAfterMs: number }>((resolve) => {
    const lost = () => resolve({ status: 0, text: 'hostile', requestId: '', retryAfterMs: 0 })
    const headers = {
      'content-type': 'application/json',
      'content-length': body.length,
      ...(gzip ? { 'content-encoding': 'gzip' } : {}),
    }
    const outgoing = http.request({
      host: '127.0.0.1',
      port,
      method: 'POST',
      path,
      headers,
      agent: false,
      timeout: TIMEOUT_MS,
    })
    outgoing.on('timeout', () => outgoing.destroy())
    outgoing.on('error', lost)
    outgoing.on('close', lost)
    outgoing.on('response', (incoming) => {
      let text = ''
      incoming.setEncoding('utf8').on('data', (chunk) => {
        if (text.length < 1_000) text += chunk
      })
      incoming.on('error', lost)
      incoming.on('end', () => {
        const retryAfterMs = Number(incoming.headers['retry-after'] ?? 0) * 1_000
        resolve({
          status: incoming.statusCode!,
          text,
          requestId: String(incoming.headers['x-request-id'] ?? ''),
          retryAfterMs,
        })
      })
    })
    outgoing.end(body)
  })
}
