/**
 * Saves all flows of a filter as CSV. A link cannot send the token, so the stream is fetched and written to a file
 * where the browser can do that, otherwise to memory up to a limit.
 */
import { addressOf, call, errorOf, type Params } from '../../api/client.ts'

type FlowQuery = NonNullable<Params<'/flows'>['query']>

const MAX_MEMORY_BYTES = 64 * 1_024 ** 2
/** Chunks joined into a Blob leave the JavaScript heap. */
const JOINED_BYTES = 4 * 1_024 ** 2
const LINE_FEED = 0x0a
const LONGEST_ROW_BYTES = 65_536
const NAME = 'flows.csv'

interface FileSink {
  readonly write: (bytes: Uint8Array) => Promise<void>
  readonly close: () => Promise<void>
  readonly abort: () => Promise<void>
}
/** The File System Access API. Not all browsers have it, and only on https or localhost. */
type SavePicker = (options: { suggestedName: string }) => Promise<{ readonly createWritable: () => Promise<FileSink> }>

export interface Saved {
  readonly bytes: number
  /** The file was cut at the memory limit. */
  readonly isCut: boolean
}

/** @throws ApiError, also if the list ends early; an AbortError if the user cancelled. */
export async function saveCsv(query: FlowQuery, signal: AbortSignal, onBytes: (bytes: number) => void): Promise<Saved> {
  const pick = (window as { showSaveFilePicker?: SavePicker }).showSaveFilePicker
  // Before anything else: browsers show the file picker only right after a click.
  const file = pick === undefined ? null : await (await pick({ suggestedName: NAME })).createWritable()
  try {
    const request = new Request(addressOf('/flows', { query }), { signal, headers: { accept: 'text/csv' } })
    const response = await call(request)
    if (!response.ok) throw errorOf(response, await response.text())
    const saved = file === null ? await intoMemory(response, onBytes) : await intoFile(response, file, onBytes)
    await file?.close()
    return saved
  } catch (error) {
    await file?.abort().catch(() => {})
    throw error
  }
}

async function intoFile(response: Response, file: FileSink, onBytes: (bytes: number) => void): Promise<Saved> {
  const reader = response.body!.getReader()
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return { bytes, isCut: false }
    await file.write(value)
    bytes += value.length
    onBytes(bytes)
  }
}

async function intoMemory(response: Response, onBytes: (bytes: number) => void): Promise<Saved> {
  const reader = response.body!.getReader()
  let whole = new Blob([], { type: 'text/csv' })
  let parts: Uint8Array<ArrayBuffer>[] = []
  let partBytes = 0
  let isCut = false
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const room = MAX_MEMORY_BYTES - whole.size - partBytes
    if (value.length > room) {
      isCut = true
      parts.push(value.subarray(0, room))
      await reader.cancel()
      break
    }
    parts.push(value)
    partBytes += value.length
    onBytes(whole.size + partBytes)
    if (partBytes < JOINED_BYTES) continue
    whole = new Blob([whole, ...parts], { type: 'text/csv' })
    parts = []
    partBytes = 0
  }
  whole = new Blob([whole, ...parts], { type: 'text/csv' })
  if (isCut) whole = await wholeRows(whole)
  const url = URL.createObjectURL(whole)
  const link = document.createElement('a')
  link.href = url
  link.download = NAME
  link.click()
  URL.revokeObjectURL(url)
  return { bytes: whole.size, isCut }
}

/** Cuts off an incomplete row at the end. */
async function wholeRows(blob: Blob): Promise<Blob> {
  const tail = new Uint8Array(await blob.slice(-LONGEST_ROW_BYTES).arrayBuffer())
  return blob.slice(0, blob.size - tail.length + tail.lastIndexOf(LINE_FEED) + 1, blob.type)
}
