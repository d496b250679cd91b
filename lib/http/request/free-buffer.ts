import { MessageChannel } from 'node:worker_threads'

/** Less is not worth it. */
const MIN_BYTES = 16 * 1024
/**
 * The bytes of ordinary bodies are left to V8: from the first buffer on that was let go, each byte that the process reads or writes through
 * any typed array takes half as long again, since V8 then asks each time whether the buffer is still there.
 */
export const MIN_BODY_BYTES = 256 * 1024

/** With nobody at the other end. */
const nowhere = (() => {
  const { port1, port2 } = new MessageChannel()
  port2.close()
  port1.close()
  return port1
})()

/**
 * Frees the memory behind bytes that are read no more, now and not at some collection: V8 looks at its heap to tell when to collect, and
 * the bytes of bodies are not part of it. What is posted to a port is its own from then on (HTML, 9.4.4, message ports: transfer), and this
 * one throws it away. The bytes must be the only ones in their `ArrayBuffer`; their length is 0 afterwards. Few bytes are left alone:
 * they may be a part of the pool that `Buffer` cuts them from.
 */
export function freeBuffer({ buffer, length }: Buffer): void {
  if (length >= MIN_BYTES && length > Buffer.poolSize / 2 && buffer instanceof ArrayBuffer)
    nowhere.postMessage(undefined, [buffer])
}

/** The same for what there is of a body of `bodyBytes`, where that is large. */
export function freeBuffers(bodyBytes: number, buffers: Iterable<Buffer>): void {
  if (bodyBytes >= MIN_BODY_BYTES) for (const buffer of buffers) freeBuffer(buffer)
}
