import type { Worker } from 'node:worker_threads'
import { HttpError } from '../http/errors.ts'
import type { Prepared, SentPayload } from './payload.ts'
import type { Answer, Ask, Kind } from './worker.ts'

/** A thread that has had nothing to do for so long ends, and its memory with it. */
const IDLE_MS = 1_000
/** No payload takes a tenth of it. */
const LIMIT_MS = 60_000

export interface ReaderOptions {
  startThread: () => Worker
  idleMs?: number
  limitMs?: number
}

/**
 * Payloads, read in a thread that starts with the first. One question at a time: who asks waits for the answer before asking again. A thread
 * that crashes, runs out of memory or does not answer fails the question that it was asked; the next gets a new one.
 */
export class PayloadReader {
  readonly #options: Required<ReaderOptions>
  #thread: Worker | null = null
  #asked: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | null = null
  #idle: NodeJS.Timeout | undefined

  constructor(options: ReaderOptions) {
    this.#options = { idleMs: IDLE_MS, limitMs: LIMIT_MS, ...options }
  }

  /** Whether there is a thread. */
  get isRunning(): boolean {
    return this.#thread !== null
  }

  /** @throws HttpError for a payload that is refused; Error when the thread fails */
  async read(kind: Kind, sent: SentPayload): Promise<Omit<Prepared, 'rows'>> {
    // A view may be a part of a buffer that others have bytes in, and all of that would be copied.
    const answer = await this.#ask({ ask: 'read', kind, sent: { ...sent, bytes: new Uint8Array(sent.bytes) } })
    if (answer.is === 'refused') throw new HttpError(answer.status, answer.message)
    if (answer.is === 'rows') throw new Error('the thread answered another question')
    return answer.payload
  }

  /** The rows of the payload that was read last, as JSON; they can be had once. */
  async rows(): Promise<string> {
    const answer = await this.#ask({ ask: 'rows' })
    if (answer.is !== 'rows') throw new Error('the thread answered another question')
    return answer.rows
  }

  async #ask(ask: Ask): Promise<Answer> {
    clearTimeout(this.#idle)
    const thread = this.#thread ?? this.#start()
    const late = setTimeout(
      () => this.#fail(thread, new Error(`no answer within ${this.#options.limitMs} ms`)),
      this.#options.limitMs,
    ).unref()
    // It keeps the process alive only while somebody waits for it.
    thread.ref()
    try {
      return await new Promise<Answer>((resolve, reject) => {
        this.#asked = { resolve, reject }
        thread.postMessage(ask)
      })
    } finally {
      this.#asked = null
      clearTimeout(late)
      thread.unref()
      this.#idle = setTimeout(() => this.#end(thread), this.#options.idleMs).unref()
    }
  }

  #start(): Worker {
    const thread = this.#options.startThread()
    thread.on('message', (answer: Answer) => this.#asked?.resolve(answer))
    thread.on('error', (cause) => this.#fail(thread, new Error('the thread that reads payloads failed', { cause })))
    thread.on('exit', (code) => this.#fail(thread, new Error(`the thread that reads payloads ended with ${code}`)))
    this.#thread = thread
    return thread
  }

  #fail(thread: Worker, error: Error): void {
    // Of one that was given up nothing is to be heard.
    if (this.#thread !== thread) return
    this.#end(thread)
    this.#asked?.reject(error)
  }

  #end(thread: Worker): void {
    if (this.#thread === thread) this.#thread = null
    void thread.terminate()
  }
}
