/** A TCP proxy that can drop the answer to a committed write and cut the connection. */
import { once } from 'node:events'
import net from 'node:net'

/** Statements whose answers may be lost: those that write posts of agents. */
const WRITES = /insert into traffic|upsert_pods|add_syscalls|upsert_services/
/** ReadyForQuery, idle: the transaction has ended. */
const DONE = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
const ERROR = 0x45

export interface LossyProxy {
  readonly port: number
  /** Count of lost answers. */
  readonly lost: number
  /** Drops the next `count` answers to writes; 0 ends that. */
  loseAnswers(count: number): void
  /** Resets every connection. */
  cut(): void
  close(): Promise<void>
}

export async function startLossyProxy(targetPort: number): Promise<LossyProxy> {
  const clients = new Set<net.Socket>()
  let toLose = 0
  let lost = 0
  const server = net.createServer({ noDelay: true }, (client) => {
    const upstream = net.connect({ host: '127.0.0.1', port: targetPort, noDelay: true })
    clients.add(client)
    let writes = false
    let parted = false
    const part = () => {
      parted = true
      clients.delete(client)
      upstream.destroy()
      if (!client.destroyed) client.resetAndDestroy()
    }
    client.on('error', part).on('close', part)
    upstream.on('error', part).on('close', part)
    client.on('data', (bytes) => {
      if (toLose > 0 && WRITES.test(bytes.toString('latin1'))) writes = true
      if (!upstream.write(bytes)) client.pause()
    })
    upstream.on('drain', () => client.resume())
    upstream.on('data', (bytes) => {
      if (parted) return
      const done = bytes.length >= DONE.length && bytes.subarray(-DONE.length).equals(DONE)
      if (done && writes && toLose > 0 && bytes[0] !== ERROR) {
        toLose--
        lost++
        part()
        return
      }
      if (done) writes = false
      if (!client.write(bytes)) upstream.pause()
    })
    client.on('drain', () => upstream.resume())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as net.AddressInfo).port,
    get lost() {
      return lost
    },
    loseAnswers(count) {
      toLose = count
    },
    cut() {
      for (const client of clients) client.resetAndDestroy()
    },
    close() {
      for (const client of clients) client.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
