/**
 * A thread that prepares payloads, one after another: inflating and validating 8 MiB would block the event loop for too
 * long.
 */
import { parentPort } from 'node:worker_threads'
import { HttpError } from '../errors.ts'
import { components } from './components.ts'
import { findings } from './findings.ts'
import { type Prepared, preparePayload, type ReportKind, type SentPayload } from './payload.ts'

/**
 * `read` is answered with `WorkerReply`, `rows` with the text of the rows of the last payload: few payloads need their
 * rows, and they are large.
 */
export type WorkerRequest =
  | {
      readonly type: 'read'
      readonly kind: ReportKind
      readonly sent: Omit<SentPayload, 'bytes'> & { readonly bytes: Uint8Array }
    }
  | { readonly type: 'rows' }

export type WorkerReply =
  | { readonly type: 'prepared'; readonly payload: Omit<Prepared, 'rows'> }
  | { readonly type: 'refused'; readonly status: number; readonly message: string }
  | { readonly type: 'rows'; readonly rows: string }

const port = parentPort!
let rows = ''

port.on('message', (request: WorkerRequest) => {
  if (request.type === 'read') {
    rows = ''
    port.postMessage(read(request))
  } else {
    port.postMessage({ type: 'rows', rows } satisfies WorkerReply)
    rows = ''
  }
})

function read({ kind, sent }: Extract<WorkerRequest, { type: 'read' }>): WorkerReply {
  const { buffer, byteOffset, length } = sent.bytes
  const payload = { ...sent, bytes: Buffer.from(buffer as ArrayBuffer, byteOffset, length) }
  try {
    const { rows: text, ...rest } =
      kind === 'sbom' ? preparePayload(components, payload) : preparePayload(findings, payload)
    rows = text
    return { type: 'prepared', payload: rest }
  } catch (error) {
    if (error instanceof HttpError) return { type: 'refused', status: error.status, message: error.message }
    throw error
  }
}
