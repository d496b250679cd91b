/** Small pieces of text that all pages share. */
import type { ComponentChildren } from 'preact'
import { href, type Query } from '../place.ts'
import type { Tone } from './tone.ts'

export { bytesText } from './bytes.ts'
export type { Tone } from './tone.ts'

const DIGEST_CHARS = 12

/** `sha256:0123456789ab`; the whole digest on hover. */
export function Digest({ digest, isLink = true }: { digest: string; isLink?: boolean }) {
  const [algorithm = '', hex] = digest.split(':')
  const short = hex === undefined ? digest : `${algorithm}:${hex.slice(0, DIGEST_CHARS)}`
  const text = (
    <code class="digest" title={digest}>
      {short}
    </code>
  )
  return isLink ? <a href={href(['image', digest])}>{text}</a> : text
}

export interface WorkloadName {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

/** `namespace/name` with its kind, linked to the dossier. */
export function Workload({ namespace, kind, name, query = {} }: WorkloadName & { query?: Query }) {
  return (
    <a href={href(['workload', namespace, kind, name], query)} title={`${kind} ${namespace}/${name}`}>
      <span class="faint">
        <bdi>{namespace}</bdi>/
      </span>
      <bdi>{name}</bdi> <span class="kind">{kind}</span>
    </a>
  )
}

/** A word with a colour; the word alone has the whole meaning. */
export function Badge({
  tone = 'plain',
  children,
  title,
}: {
  tone?: Tone
  children: ComponentChildren
  title?: string
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  )
}

const SEVERITY_TONES: Readonly<Record<string, Tone>> = {
  CRITICAL: 'bad',
  HIGH: 'bad',
  MEDIUM: 'warn',
  LOW: 'info',
}

export function SeverityBadge({ severity }: { severity: string | null | undefined }) {
  if (severity === null || severity === undefined) return <Badge>unknown</Badge>
  return <Badge tone={SEVERITY_TONES[severity.toUpperCase()] ?? 'plain'}>{severity.toLowerCase()}</Badge>
}

const number = new Intl.NumberFormat()

/** A count, or a question mark if it is not known. */
export function Count({ value, to }: { value: number | null | undefined; to?: string }) {
  if (value === null || value === undefined)
    return (
      <span class="faint" title="not known">
        ?
      </span>
    )
  const text = number.format(value)
  return to === undefined || value === 0 ? (
    <span class="number">{text}</span>
  ) : (
    <a class="number" href={to}>
      {text}
    </a>
  )
}
