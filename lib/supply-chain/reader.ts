import type { Worker } from 'node:worker_threads'
import { HttpError } from '../errors.ts'
import type { Prepared, ReportKind, SentPayload } from './payload.ts'
import type { WorkerReply, WorkerRequest } from './worker.ts'

/** A thread that is idle for this long ends, which frees its memory. */
const IDLE_MS = 1_000
/** No payload takes a tenth of this time. */
const LIMIT_MS = 60_000

export interface ReaderOptions {
  startThread: () => Worker
  idleMs?: number
  limitMs?: number
}

/**
 * Reads payloads in a thread that starts with the first one. One question at a time: the caller waits for the answer
 * before it asks again. A thread that crashes, runs out of memory or does not answer fails the question in flight; the
 * next question starts a new thread.
 */
export class PayloadReader {
  readonly #options: Required<ReaderOptions>
  #thread: Worker | null = null
  #waiting: { resolve: (reply: WorkerReply) => void; reject: (error: Error) => void } | null = null
  #idle: NodeJS.Timeout | undefined

  constructor(options: ReaderOptions) {
    this.#options = { idleMs: IDLE_MS, limitMs: LIMIT_MS, ...options }
  }

  /** Whether a thread exists. */
  get isRunning(): boolean {
    return this.#thread !== null
  }

  /** @throws HttpError for a refused payload; Error when the thread fails */
  async read(kind: ReportKind, sent: SentPayload): Promise<Omit<Prepared, 'rows'>> {
    // A view may be part of a larger buffer, and all of that would be copied to the thread.
    const reply = await this.#request({ type: 'read', kind, sent: { ...sent, bytes: new Uint8Array(sent.bytes) } })
    if (reply.type === 'refused') throw new HttpError(reply.status, reply.message)
    if (reply.type === 'rows') throw new Error('the thread answered another question')
    return reply.payload
  }

  /** The rows of the last payload, as JSON text. May be called once for each payload. */
  async rows(): Promise<string> {
    const reply = await this.#request({ type: 'rows' })
    if (reply.type !== 'rows') throw new Error('the thread answered another question')
    return reply.rows
  }

  async #request(request: WorkerRequest): Promise<WorkerReply> {
    clearTimeout(this.#idle)
    const thread = this.#thread ?? this.#start()
    const late = setTimeout(
      () => this.#fail(thread, new Error(`no answer within ${this.#options.limitMs} ms`)),
      this.#options.limitMs,
    ).unref()
    // The thread keeps the process alive only while a caller waits for it.
    thread.ref()
    try {
      return await new Promise<WorkerReply>((resolve, reject) => {
        this.#waiting = { resolve, reject }
        thread.postMessage(request)
      })
    } finally {
      this.#waiting = null
      clearTimeout(late)
      thread.unref()
      this.#idle = setTimeout(() => this.#end(thread), this.#options.idleMs).unref()
    }
  }

  #start(): Worker {
    const thread = this.#options.startThread()
    thread.on('message', (reply: WorkerReply) => this.#waiting?.resolve(reply))
    thread.on('error', (cause) => this.#fail(thread, new Error('the thread that reads payloads failed', { cause })))
    thread.on('exit', (code) => this.#fail(thread, new Error(`the thread that reads payloads ended with ${code}`)))
    this.#thread = thread
    return thread
  }

  #fail(thread: Worker, error: Error): void {
    // Events of a thread that was given up are ignored.
    if (this.#thread !== thread) return
    this.#end(thread)
    this.#waiting?.reject(error)
  }

  #end(thread: Worker): void {
    if (this.#thread === thread) this.#thread = null
    void thread.terminate()
  }
}
