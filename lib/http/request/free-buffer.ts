import { MessageChannel } from 'node:worker_threads'

/** Freeing less is not worth its time. */
const MIN_BYTES = 16 * 1024
/**
 * The bytes of smaller bodies are left to the garbage collector: after the first buffer that was freed, V8 checks at
 * each access to any typed array of the process whether its memory is still there, which makes these accesses half as
 * slow again.
 */
export const MIN_BODY_BYTES = 256 * 1024

/** A port without another end. */
const nowhere = (() => {
  const { port1, port2 } = new MessageChannel()
  port2.close()
  port1.close()
  return port1
})()

/**
 * Frees the memory behind a buffer now, not at some collection: V8 looks at its heap to decide when to collect, and
 * these bytes are outside of it. A message transfers the buffer (HTML, 9.4.4), and this port drops its messages. The
 * buffer must be the only one in its `ArrayBuffer`; its length is 0 afterwards. Small buffers are left alone: they may
 * be a part of Node's pool.
 */
export function freeBuffer({ buffer, length }: Buffer): void {
  if (length >= MIN_BYTES && length > Buffer.poolSize / 2 && buffer instanceof ArrayBuffer)
    nowhere.postMessage(undefined, [buffer])
}

/** Frees the buffers of a body of `bodyBytes`, if it is large. */
export function freeBuffers(bodyBytes: number, buffers: Iterable<Buffer>): void {
  if (bodyBytes >= MIN_BODY_BYTES) for (const buffer of buffers) freeBuffer(buffer)
}
