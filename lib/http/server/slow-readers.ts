/**
 * The connections of a server and the answers under way on them. Node has no list of either; it takes an answer that has been written
 * but has not left for done, and never asks how fast one is taken.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How fast and for how long answers must be taken. */
export interface ReaderLimits {
  /** The least rate at which the bytes that are due on a connection must leave the process. */
  leastBytesPerSecond: number
  /**
   * A reader may be so far behind the rate. The kernel takes 4 MB at once and then asks for more only when a third of that is gone: bytes
   * of a reader at 64 KiB/s leave once in 21 s.
   */
  graceMs: number
  /**
   * An answer must have left so long after its request. At the least rate that is 38 MB, four times the longest list of a fixed length: it
   * bounds those that are asked for in one breath. A list without limit of 3 million flows (1.4 GB) needs a reader of 2.4 MB/s.
   */
  answerMs: number
  /** How often that is looked at. */
  sweepMs: number
}

export const READER_LIMITS: ReaderLimits = {
  leastBytesPerSecond: 64 * 1024,
  graceMs: 23_000,
  answerMs: 600_000,
  sweepMs: 1_000,
}

/** Why a reader was cut. */
export interface Cut {
  reason: 'rate' | 'deadline'
  /** Bytes that stood in the process, on their way to it. */
  waitingBytes: number
}

interface Connection {
  readonly socket: Socket
  /** Those that have not left, in the order of their requests; the sweep drops those that have. */
  readonly answers: { readonly answer: ServerResponse; readonly askedAt: number }[]
  /** Bytes that had left at the last sweep. */
  left: number
  /** Bytes that may be wanting before the reader is cut. */
  credit: number
  /** Bytes that had come at the last look of a server that closes. */
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
      // In the order of their requests: with the last all have left.
      if (answers?.at(-1)?.answer.writableFinished) answers.length = 0
      answers?.push({ answer, askedAt: this.#sweptAt })
    })
  }

  /** Whether an answer is under way on a connection of which a part may have left. */
  hasBegun(socket: Socket): boolean {
    return this.#open.get(socket)?.answers.some(({ answer }) => answer.headersSent && !answer.writableFinished) ?? false
  }

  /** Ends the connections on which no answer is under way and nothing came since the last call. */
  endQuiet(): void {
    for (const connection of this.#open.values()) {
      const { socket, answers } = connection
      dropLeft(connection)
      if (answers.length === 0 && socket.bytesRead === connection.heard) socket.destroy()
      connection.heard = socket.bytesRead
    }
  }

  cutAll(): void {
    for (const connection of this.#open.values()) {
      dropLeft(connection)
      if (connection.answers.length === 0) connection.socket.destroy()
      else connection.socket.resetAndDestroy()
    }
  }

  #sweep(): void {
    const now = performance.now()
    // Readers owe nothing for the time in which this process stood still.
    const dueMs = Math.min(now - this.#sweptAt, 2 * this.#limits.sweepMs)
    const dueBytes = (dueMs * this.#limits.leastBytesPerSecond) / 1_000
    this.#sweptAt = now
    for (const connection of this.#open.values()) {
      if (connection.answers.length === 0) continue
      dropLeft(connection)
      const reason = this.#faultOf(connection, now, dueBytes)
      if (reason === null) continue
      this.#onCut({ reason, waitingBytes: connection.socket.writableLength })
      // An orderly end would make what was sent look whole to HTTP/1.0.
      connection.socket.resetAndDestroy()
    }
  }

  #faultOf(connection: Connection, now: number, dueBytes: number): Cut['reason'] | null {
    const { socket, answers } = connection
    const waitingBytes = socket.writableLength
    const left = socket.bytesWritten - waitingBytes
    const taken = left - connection.left
    connection.left = left
    // What is not there yet cannot be taken.
    if (waitingBytes === 0) connection.credit = this.#creditBytes
    else connection.credit = Math.min(this.#creditBytes, connection.credit + taken) - dueBytes
    if (connection.credit < 0) return 'rate'
    const first = answers[0]
    return first && now - first.askedAt > this.#limits.answerMs ? 'deadline' : null
  }
}

function dropLeft({ answers }: Connection): void {
  while (answers[0]?.answer.writableFinished) answers.shift()
}
