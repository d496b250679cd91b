/** The parts of a report of coverage as one list. */
import { imageText } from '../output/words.ts'

interface Detail {
  readonly cause: string
}

interface Part<Item> {
  readonly totals: {
    readonly total: number
    readonly known: number
    readonly missing: Readonly<Record<string, number>>
  } | null
  readonly items: readonly (Item & { readonly missing: readonly string[] })[]
  readonly nextAfter: string | null
}

interface Named {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

interface Items {
  readonly images: {
    readonly digest: string
    readonly repository: string | null
    readonly report: { readonly scannedAt: string } | null
  }
  readonly containers: Named & {
    readonly container: string
    readonly reason: string | null
    readonly reasonDetail: Detail | null
    readonly observedSince: string | null
  }
  readonly nodes: {
    readonly node: string
    readonly lastPodPostAt: string | null
    readonly reasonDetail: Detail | null
  }
  readonly workloads: Named & { readonly denialsReason: string | null; readonly denialsReasonDetail: Detail | null }
}

export type Parts = { readonly [P in keyof Items]: Part<Items[P]> | null }

export const PARTS = ['images', 'containers', 'nodes', 'workloads'] as const

export type Row = {
  [P in keyof Items]: { readonly part: P; readonly missing: readonly string[] } & Items[P]
}[keyof Items]

export const rowsOf = (answer: Parts): Row[] =>
  PARTS.flatMap((part) => (answer[part]?.items ?? []).map((item) => ({ part, ...item }) as Row))

interface Told {
  readonly what: string
  /** As other commands take it. */
  readonly name: string
  readonly reason?: string | null
  /** Since when it is observed. */
  readonly since?: string | null
  /** The last scan, or the last post. */
  readonly last?: string | null
}

/** The columns of a row of any part. */
export function toldBy(row: Row): Told {
  switch (row.part) {
    case 'images':
      return { what: imageText({ ...row, tags: [] }), name: row.digest, last: row.report?.scannedAt ?? null }
    case 'containers': {
      const [name, reason] = [nameOf(row), reasonText(row.reason, row.reasonDetail)]
      return { what: `${name}/${row.container}`, name, reason, since: row.observedSince }
    }
    case 'nodes':
      return { what: row.node, name: row.node, reason: reasonText(null, row.reasonDetail), last: row.lastPodPostAt }
    case 'workloads': {
      const [name, reason] = [nameOf(row), reasonText(row.denialsReason, row.denialsReasonDetail)]
      return { what: name, name, reason }
    }
  }
}

const nameOf = ({ namespace, kind, name }: Named): string => `${namespace}/${kind}/${name}`

const reasonText = (reason: string | null, detail: Detail | null): string | null =>
  [reason, detail?.cause].filter((text) => text).join(': ') || null

/** How much of each part is known, and which of them have more rows. */
export function totalTexts(answer: Parts): string[] {
  const isOne = PARTS.filter((part) => answer[part] !== null).length === 1
  return PARTS.flatMap((part) => {
    const found = answer[part]
    if (found === null) return []
    const more = found.nextAfter !== null && !isOne ? [`there are more ${part}: see --part ${part}`] : []
    return [...totalText(part, found.totals), ...more]
  })
}

/** Pages after the first have no totals. */
function totalText(part: string, totals: Part<unknown>['totals']): string[] {
  if (totals === null) return []
  const missing = Object.entries(totals.missing).filter(([, count]) => count > 0)
  const texts = missing.map(([name, count]) => `${name} ${count}`)
  return [`${part}: ${totals.known} of ${totals.total} known whole${texts.length > 0 ? `; ${texts.join(', ')}` : ''}`]
}
