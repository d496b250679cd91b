/** The view as a command: `ctb` and `curl`. */
import { useEffect, useState } from 'preact/hooks'
import { tokenSource } from '../api/session.ts'

const SHOWN_MS = 2_000

export interface Commands {
  /** Arguments of `ctb`; null if it has no such command. */
  readonly ctb?: readonly string[] | null
  /** URL of the route. */
  readonly url?: string
}

/** Quotes an argument for a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

export function ctbText(args: readonly string[]): string {
  return ['ctb', ...args].map(shellWord).join(' ')
}

/** The token is a shell variable, so no secret is copied. */
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

/**
 * A button that copies a text and confirms it. With `isLong` the text is not shown, neither on hover nor after a failed
 * copy.
 */
export function CopyButton({ label, text, isLong = false }: { label: string; text: string; isLong?: boolean }) {
  const [said, setSaid] = useState<string | null>(null)
  useEffect(() => {
    if (said === null) return
    const timer = setTimeout(() => setSaid(null), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [said])
  // The clipboard is available only on https or localhost.
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
