/** Links to other sites. Their URLs come from scanners, so the URL is shown before anything is opened. */
import { useState } from 'preact/hooks'

export function Outside({ url }: { url: string }) {
  const [isOpen, setOpen] = useState(false)
  if (!isWebAddress(url)) return <span class="wrap">{url}</span>
  if (!isOpen)
    return (
      <button type="button" class="link" onClick={() => setOpen(true)}>
        {new URL(url).hostname}…
      </button>
    )
  return (
    <span class="outside">
      Another site: <code class="wrap">{url}</code>{' '}
      <a href={url} target="_blank" rel="noopener noreferrer">
        Open it
      </a>{' '}
      <button type="button" class="quiet" onClick={() => setOpen(false)}>
        Close
      </button>
    </span>
  )
}

function isWebAddress(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}
