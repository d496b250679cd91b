/** Bounds the memory of a long copy. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const EVERY_BYTES = 1024 * 1024

/**
 * Node frees the buffers of a socket only when 32 MiB of them are unused, half of what an export may take. The result
 * is called with the bytes of each piece, and frees them earlier.
 */
export function releaser(): (bytes: number) => void {
  let collect: ((options: { type: 'minor' }) => void) | undefined
  let unused = 0
  return (bytes) => {
    unused += bytes
    if (unused < EVERY_BYTES) return
    unused = 0
    collect ??= minorCollection()
    collect({ type: 'minor' })
  }
}

function minorCollection(): (options: { type: 'minor' }) => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}
