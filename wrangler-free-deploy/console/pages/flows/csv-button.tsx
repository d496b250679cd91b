/** Exports all flows of the filter as CSV, not only those on the page. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Params } from '../../api/client.ts'
import { bytesText } from '../../parts/text.tsx'
import { saveCsv } from './save-csv.ts'

const CUT_ADVICE = 'Narrow the filter or the window, or use ctb with -o csv.'

export function CsvButton({ query }: { query: NonNullable<Params<'/flows'>['query']> }) {
  const [bytes, setBytes] = useState<number | null>(null)
  const [said, setSaid] = useState('')
  const abort = useRef<AbortController | null>(null)
  useEffect(() => () => abort.current?.abort(), [])
  const save = async () => {
    abort.current = new AbortController()
    setSaid('')
    setBytes(0)
    try {
      const saved = await saveCsv(query, abort.current.signal, setBytes)
      setSaid(
        saved.isCut
          ? `Cut at ${bytesText(saved.bytes)}, the limit of memory: the rest of the list is missing. ${CUT_ADVICE}`
          : `Saved, ${bytesText(saved.bytes)}.`,
      )
    } catch (error) {
      const { name, message } = error as Error
      setSaid(name === 'AbortError' ? '' : `Not saved, the list ended early: ${message}`)
    }
    setBytes(null)
  }
  return (
    <>
      {bytes === null ? (
        <button type="button" class="quiet" title="All flows of this filter and window, with all fields" onClick={save}>
          CSV of all
        </button>
      ) : (
        <button type="button" class="quiet" onClick={() => abort.current?.abort()}>
          Stop at {bytesText(bytes)}
        </button>
      )}
      <span class={said === '' ? 'unseen' : 'faint'} role="status">
        {said}
      </span>
    </>
  )
}
