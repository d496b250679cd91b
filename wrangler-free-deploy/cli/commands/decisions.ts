import { listing } from '../list/listing.ts'
import { shortDigest, yesNo } from '../output/words.ts'

interface Scope {
  readonly type: string
  readonly namespace?: string
  readonly kind?: string
  readonly name?: string
  readonly digest?: string
  readonly repository?: string
  readonly arch?: string
}

interface Decision {
  readonly id: number
  readonly vulnerability: string
  readonly decision: string
  readonly justification: string | null
  readonly scope: Scope
  readonly package: string | null
  readonly until: string | null
  readonly by: string
  readonly why: string
  readonly decidedAt: string
  readonly origin: { readonly document: string } | null
  readonly holds: boolean
  readonly endedAt: string | null
  readonly endedHow: string | null
  readonly endedBy: string | null
  readonly endedWhy: string | null
}

function scopeText({ type, namespace, kind, name, digest, arch, repository }: Scope): string {
  const image = digest && [shortDigest(digest), arch].filter(Boolean).join(' ')
  const parts = [namespace, kind, name, repository, image].filter((part) => part !== undefined)
  return [type, parts.join('/')].join(' ').trim()
}

export const decisions = listing<{ items: readonly Decision[]; nextAfter: number | null }, Decision>({
  route: '/vulnerabilities/{id}/decisions',
  argument: { placeholder: 'CVE', brief: 'The id of a vulnerability, or one of its aliases.' },
  askedOf: (id) => ({ path: ['vulnerabilities', id, 'decisions'], query: {} }),
  rowsOf: ({ items }) => items,
  nextOf: ({ nextAfter }) => nextAfter,
  columns: [
    { header: 'DECIDED AT', of: ({ decidedAt }) => decidedAt, isTime: true },
    { header: 'DECISION', of: ({ decision }) => decision },
    { header: 'HOLDS', of: ({ holds }) => yesNo(holds) },
    { header: 'SCOPE', of: ({ scope }) => scopeText(scope) },
    { header: 'PACKAGE', of: (row) => row.package },
    { header: 'UNTIL', of: ({ until }) => until },
    { header: 'BY', of: ({ by }) => by },
    { header: 'WHY', of: ({ why }) => why },
    { header: 'ENDED', of: ({ endedHow }) => endedHow },
    { header: 'ENDED AT', of: ({ endedAt }) => endedAt, isTime: true, isWide: true },
    { header: 'ENDED BY', of: ({ endedBy }) => endedBy, isWide: true },
    { header: 'ENDED WHY', of: ({ endedWhy }) => endedWhy, isWide: true },
    { header: 'JUSTIFICATION', of: ({ justification }) => justification, isWide: true },
    { header: 'VULNERABILITY', of: ({ vulnerability }) => vulnerability, isWide: true },
    { header: 'DOCUMENT', of: ({ origin }) => origin?.document, isWide: true },
  ],
  nameOf: ({ id }) => String(id),
  nothing: 'nothing was decided',
  brief: 'List the decisions about a vulnerability, the newest first, with those that no longer hold',
})
