/** A gzip header and trailer with nothing between them. */
const MIN_GZIP_BYTES = 18
const MIN_CHUNK_BYTES = 1_024

/**
 * The size of zlib's output buffer for a gzip of at most `maxBytes` unpacked. The length that its last four bytes
 * announce is a hint only (RFC 1952, 2.3.1), but where it is right the output comes in one piece.
 */
export function gunzipChunkBytes(sent: Buffer, maxBytes: number): number {
  const announced = sent.length >= MIN_GZIP_BYTES ? sent.readUInt32LE(sent.length - 4) : 0
  return Math.min(Math.max(announced, MIN_CHUNK_BYTES), maxBytes) + 1
}
