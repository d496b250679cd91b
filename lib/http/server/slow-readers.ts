/**
 * The connections of a server and the answers that are being sent on them. Node has no list of either; it counts an
 * answer as done when it was written, not when it was sent, and has no least rate for readers.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How fast and by when clients must read their answers. */
export interface ReaderLimits {
  /** The least rate at which a connection must take the bytes that wait for it. */
  leastBytesPerSecond: number
  /**
   * A reader may be this far behind the rate. The kernel takes 4 MB at once, and more only when a third of that is
   * gone: for a reader at 64 KiB/s bytes leave the process once in 21 s.
   */
  graceMs: number
  /**
   * An answer must be sent this long after its request. At the least rate that is 38 MB, four times the longest list of
   * a fixed length: it bounds pipelined requests. A list without limit of 3 million flows (1.4 GB) needs a reader of
   * 2.4 MB/s.
   */
  answerMs: number
  /** The interval of these checks. */
  sweepMs: number
}

export const READER_LIMITS: ReaderLimits = {
  leastBytesPerSecond: 64 * 1024,
  graceMs: 23_000,
  answerMs: 600_000,
  sweepMs: 1_000,
}

/** Why a connection was reset. */
export interface Cut {
  reason: 'rate' | 'deadline'
  /** Bytes that waited in the process to be sent. */
  waitingBytes: number
}

interface Connection {
  readonly socket: Socket
  /** Answers that were not sent yet, in the order of their requests; the sweep removes those that were. */
  readonly answers: { readonly answer: ServerResponse; readonly askedAt: number }[]
  /** Bytes that were sent by the last sweep. */
  left: number
  /** Bytes by which the reader may still fall behind. */
  credit: number
  /** Bytes received by the last check while the server closes. */
  heard: number
}

export class Connections {
  readonly #limits: ReaderLimits
  readonly #onCut: (cut: Cut) => void
  readonly #open = new Map<Socket, Connection>()
  readonly #creditBytes: number
  #sweptAt = performance.now()

  constructor(server: Server, limits: ReaderLimits, onCut: (cut: Cut) => void) {
    this.#limits = limits
    this.#onCut = onCut
    this.#creditBytes = (limits.leastBytesPerSecond * limits.graceMs) / 1_000
    const sweep = setInterval(() => this.#sweep(), limits.sweepMs).unref()
    server.on('close', () => clearInterval(sweep))
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, { socket, answers: [], left: 0, credit: this.#creditBytes, heard: -1 })
      socket.once('close', () => this.#open.delete(socket))
    })
    server.on('request', ({ socket }, answer: ServerResponse) => {
      const answers = this.#open.get(socket)?.answers
      // Sent in order: after the last one all were sent.
      if (answers?.at(-1)?.answer.writableFinished) answers.length = 0
      answers?.push({ answer, askedAt: this.#sweptAt })
    })
  }

  /** Whether a part of an unfinished answer may have been sent on a connection. */
  hasBegun(socket: Socket): boolean {
    return this.#open.get(socket)?.answers.some(({ answer }) => answer.headersSent && !answer.writableFinished) ?? false
  }

  /** Ends the connections without an unfinished answer on which nothing arrived since the last call. */
  endQuiet(): void {
    for (const connection of this.#open.values()) {
      const { socket, answers } = connection
      dropSent(connection)
      if (answers.length === 0 && socket.bytesRead === connection.heard) socket.destroy()
      connection.heard = socket.bytesRead
    }
  }

  cutAll(): void {
    for (const connection of this.#open.values()) {
      dropSent(connection)
      if (connection.answers.length === 0) connection.socket.destroy()
      else connection.socket.resetAndDestroy()
    }
  }

  #sweep(): void {
    const now = performance.now()
    // Readers cannot be blamed for the time in which this process was busy.
    const dueMs = Math.min(now - this.#sweptAt, 2 * this.#limits.sweepMs)
    const dueBytes = (dueMs * this.#limits.leastBytesPerSecond) / 1_000
    this.#sweptAt = now
    for (const connection of this.#open.values()) {
      if (connection.answers.length === 0) continue
      dropSent(connection)
      const reason = this.#faultOf(connection, now, dueBytes)
      if (reason === null) continue
      this.#onCut({ reason, waitingBytes: connection.socket.writableLength })
      // To HTTP/1.0 an orderly end would make the part that was sent look complete.
      connection.socket.resetAndDestroy()
    }
  }

  #faultOf(connection: Connection, now: number, dueBytes: number): Cut['reason'] | null {
    const { socket, answers } = connection
    const waitingBytes = socket.writableLength
    const left = socket.bytesWritten - waitingBytes
    const taken = left - connection.left
    connection.left = left
    // No bytes wait: the reader is up to date.
    if (waitingBytes === 0) connection.credit = this.#creditBytes
    else connection.credit = Math.min(this.#creditBytes, connection.credit + taken) - dueBytes
    if (connection.credit < 0) return 'rate'
    const first = answers[0]
    return first && now - first.askedAt > this.#limits.answerMs ? 'deadline' : null
  }
}

function dropSent({ answers }: Connection): void {
  while (answers[0]?.answer.writableFinished) answers.shift()
}
