/** A thread that misbehaves as the digest of the payload says. */
import { parentPort } from 'node:worker_threads'
import type { WorkerRequest } from '../../../lib/supply-chain/worker.ts'

const port = parentPort!
port.on('message', (request: WorkerRequest) => {
  const fate = request.type === 'read' ? request.sent.digest : 'rows'
  const held: unknown[] = []
  switch (fate) {
    case 'throw':
      throw new Error('a fault of ours')
    case 'exit':
      return process.exit(3)
    case 'memory':
      for (;;) held.push(new Array(1_000).fill(held.length))
    case 'silence':
      return
    case 'spin':
      for (;;);
    default:
      port.postMessage(
        fate === 'rows'
          ? { type: 'rows', rows: '[]' }
          : { type: 'prepared', payload: { header: process.pid, page: null } },
      )
  }
})
