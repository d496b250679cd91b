/** What a view shows, as a command: `ctb` and `curl`. */
import { useEffect, useState } from 'preact/hooks'
import { tokenSource } from '../api/session.ts'

const SHOWN_MS = 2_000

export interface Commands {
  /** Arguments of `ctb`; null where it has no such command. */
  readonly ctb?: readonly string[] | null
  /** Address of the route. */
  readonly url?: string
}

/** An argument for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

export function ctbText(args: readonly string[]): string {
  return ['ctb', ...args].map(shellWord).join(' ')
}

/** The token is a variable of the shell: nothing secret is copied. */
export function curlText(url: string): string {
  const token = tokenSource === 'browser' ? ['-H', '"Authorization: Bearer $CTB_TOKEN"'] : []
  return ['curl', '-s', ...token, shellWord(url)].join(' ')
}

export function CopyAs({ ctb, url }: Commands) {
  return (
    <>
      {ctb && <CopyButton label="Copy as ctb" text={ctbText(ctb)} />}
      {url !== undefined && <CopyButton label="Copy as curl" text={curlText(url)} />}
    </>
  )
}

/** A button that copies a text and says so. A long text is not shown, neither on hover nor where it cannot be copied. */
export function CopyButton({ label, text, isLong = false }: { label: string; text: string; isLong?: boolean }) {
  const [said, setSaid] = useState<string | null>(null)
  useEffect(() => {
    if (said === null) return
    const timer = setTimeout(() => setSaid(null), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [said])
  // A page that is not on https or localhost has no clipboard.
  const failed = () => setSaid(isLong ? 'This browser does not let the page copy' : text)
  const copy = () => navigator.clipboard.writeText(text).then(() => setSaid('Copied'), failed)
  const tryCopy = () => {
    // Without a clipboard the call itself throws.
    try {
      void copy()
    } catch {
      failed()
    }
  }
  return (
    <>
      <button type="button" class="quiet" title={isLong ? undefined : text} onClick={tryCopy}>
        {said === 'Copied' ? 'Copied' : label}
      </button>
      {said !== null && said !== 'Copied' && <code class="copied">{said}</code>}
      <span class="unseen" aria-live="polite">
        {said === 'Copied' ? 'Copied to the clipboard' : ''}
      </span>
    </>
  )
}
