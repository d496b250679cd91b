/** Downloads of documents. A link cannot send the token, so the document is fetched and saved as a file. */
import { useState } from 'preact/hooks'
import { ApiError, call, errorOf } from '../api/client.ts'
import { download } from './csv.ts'

/** A button that fetches a URL of the broker and saves the answer as a file. */
export function DownloadButton({ label, url, file }: { label: string; url: string; file: string }) {
  const [isReading, setReading] = useState(false)
  const [fault, setFault] = useState<string | null>(null)
  const read = async () => {
    setReading(true)
    setFault(null)
    try {
      const response = await call(new Request(url))
      const text = await response.text()
      if (!response.ok) throw errorOf(response, text)
      download(file, response.headers.get('content-type') ?? 'application/json', text)
    } catch (error) {
      setFault(error instanceof ApiError ? error.message : 'It could not be read.')
    } finally {
      setReading(false)
    }
  }
  return (
    <>
      <button type="button" disabled={isReading} onClick={() => void read()}>
        {isReading ? 'Reading…' : label}
      </button>
      {fault !== null && (
        <span class="faint" role="status">
          {fault}
        </span>
      )}
    </>
  )
}
