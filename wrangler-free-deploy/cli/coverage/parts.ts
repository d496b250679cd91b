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

export interface Parts {
  readonly images: Part<{
    readonly digest: string
    readonly repository: string | null
    readonly report: { readonly scannedAt: string } | null
  }> | null
  readonly containers: Part<
    Named & {
      readonly container: string
      readonly reason: string | null
      readonly reasonDetail: Detail | null
      readonly observedSince: string | null
    }
  > | null
  readonly nodes: Part<{
    readonly node: string
    readonly lastPodPostAt: string | null
    readonly reasonDetail: Detail | null
  }> | null
  readonly workloads: Part<
    Named & { readonly denialsReason: string | null; readonly denialsReasonDetail: Detail | null }
  > | null
}

export const PARTS = ['images', 'containers', 'nodes', 'workloads'] as const

interface Row {
  readonly part: (typeof PARTS)[number]
  readonly what: string
  /** As other commands take it. */
  readonly name: string
  readonly missing: readonly string[]
  readonly reason: string | null
  readonly since: string | null
  readonly last: string | null
}

const NONE = { reason: null, since: null, last: null }

export const rowsOf = ({ images, containers, nodes, workloads }: Parts): Row[] => [
  ...(images?.items ?? []).map(({ missing, digest, repository, report }) => ({
    ...{ ...NONE, part: 'images' as const, name: digest, missing },
    what: imageText({ repository, digest, tags: [] }),
    last: report?.scannedAt ?? null,
  })),
  ...(containers?.items ?? []).map(({ missing, container, reason, reasonDetail, observedSince, ...workload }) => ({
    ...{ ...NONE, part: 'containers' as const, name: nameOf(workload), missing },
    what: `${nameOf(workload)}/${container}`,
    reason: reasonText(reason, reasonDetail),
    since: observedSince,
  })),
  ...(nodes?.items ?? []).map(({ missing, node, lastPodPostAt, reasonDetail }) => ({
    ...{ ...NONE, part: 'nodes' as const, what: node, name: node, missing },
    reason: reasonText(null, reasonDetail),
    last: lastPodPostAt,
  })),
  ...(workloads?.items ?? []).map(({ missing, denialsReason, denialsReasonDetail, ...workload }) => ({
    ...{ ...NONE, part: 'workloads' as const, what: nameOf(workload), name: nameOf(workload), missing },
    reason: reasonText(denialsReason, denialsReasonDetail),
  })),
]

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
