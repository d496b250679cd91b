/**
 * Sends long answers in slices, each when the one before has left the process, so that memory is freed as the client
 * reads.
 */
import { constants, createGzip } from 'node:zlib'
import type { Share } from '../../limits/memory-budget.ts'

/** Longer answers are sent in slices; up to this size one write is quicker. */
export const MAX_WHOLE_BYTES = 512 * 1024
/** Smaller slices cost more time. A slow reader must take at least one before the broker sees it read. */
const SLICE_BYTES = 256 * 1024
/** Most readers are done before that, and copying the rest for them would be wasted. */
const QUICK_MS = 500

/** The pieces of an answer in order, then null. Each is requested when the one before was sent. */
export interface Pieces {
  next(): Promise<Uint8Array | null>
  cancel(): void
}

/** The pieces in slices. The answer's share of the read budget shrinks with them. */
export function sliced(pieces: Pieces, share: Share | undefined): ReadableStream<Uint8Array> {
  let held: Uint8Array = EMPTY
  let at = 0
  let heldSince = 0
  let isGone = false
  const hold = (bytes: Uint8Array) => {
    held = bytes
    at = 0
    share?.keep(bytes.buffer.byteLength)
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (at < held.length) {
          // A view would keep the whole piece in memory.
          if (at >= held.length / 4 && performance.now() - heldSince > QUICK_MS) hold(Buffer.from(held.subarray(at)))
        } else {
          held = EMPTY
          let piece = await pieces.next()
          while (piece?.length === 0) piece = await pieces.next()
          if (isGone) return
          if (piece === null) {
            controller.close()
            return
          }
          heldSince = performance.now()
          hold(piece)
        }
        controller.enqueue(held.subarray(at, at + SLICE_BYTES))
        at += SLICE_BYTES
      },
      cancel() {
        isGone = true
        held = EMPTY
        pieces.cancel()
      },
    },
    { highWaterMark: 0 },
  )
}

const EMPTY = new Uint8Array(0)

/** One piece. */
export function once(bytes: Uint8Array): Pieces {
  const rest = [bytes]
  return { next: async () => rest.pop() ?? null, cancel: () => void rest.pop() }
}

/** The pieces as one gzip member, flushed at the end of each. */
export function packed(pieces: Pieces): Pieces {
  const gzip = createGzip({ level: constants.Z_BEST_SPEED })
  let out: Buffer[] = []
  const take = () => {
    const all = Buffer.concat(out)
    out = []
    return all
  }
  gzip.on('data', (bytes: Buffer) => out.push(bytes))
  return {
    async next() {
      if (gzip.writableEnded) return null
      const piece = await pieces.next()
      return new Promise<Buffer>((resolve, reject) => {
        gzip.once('error', reject)
        const done = () => {
          gzip.off('error', reject)
          resolve(take())
        }
        if (piece === null) gzip.once('end', done).end()
        else {
          gzip.write(piece)
          gzip.flush(constants.Z_SYNC_FLUSH, done)
        }
      })
    },
    cancel() {
      gzip.destroy()
      pieces.cancel()
    },
  }
}
