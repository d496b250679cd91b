import { listing } from '../list/listing.ts'
import type { Colour } from '../output/cell.ts'
import { timeText } from '../output/cell.ts'
import { counted } from '../output/lines.ts'

type Status = 'ok' | 'warn' | 'risk' | 'unknown'

interface Dimension {
  readonly status: Status
}

interface Workload {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly posture: { readonly status: Status }
  readonly dimensions: {
    readonly network: Dimension
    readonly syscalls: Dimension
    readonly compute: Dimension
    readonly podSecurity: Dimension & { readonly level: string | null }
    readonly images: Dimension & { readonly runningDigests: number | null; readonly signature: string | null }
  }
  readonly findingCounts: Readonly<Record<'critical' | 'high' | 'medium' | 'low', number>> | null
  readonly drift: { readonly count: number } | null
  readonly revision: number | null
  readonly lastChangedAt: string | null
  readonly computedAt: string | null
  readonly lastError: string | null
}

const COLOURS: Readonly<Record<string, Colour>> = { risk: 'red', warn: 'yellow', ok: 'green' }

const nameOf = ({ namespace, kind, name }: Workload): string => `${namespace}/${kind}/${name}`

/** Workloads of a page that are named. */
const MAX_NAMED = 3

const HOUR_MS = 3_600_000
/** The job computes each profile every five minutes, and more slowly where there are very many. */
const OLD_HOURS = 3

function ageTexts(items: readonly Workload[]): string[] {
  const oldest = new Date(Date.now() - OLD_HOURS * HOUR_MS).toISOString()
  const old = items.flatMap(({ computedAt }) => (computedAt !== null && computedAt < oldest ? [computedAt] : [])).sort()
  if (old.length === 0) return []
  return [
    `${counted(old.length, 'workload')} as computed more than ${OLD_HOURS} hours ago, the oldest ` +
      `${timeText(old[0]!, true)}: what changed since is not shown`,
  ]
}

function saidOf({ items }: { readonly items: readonly Workload[] }): string[] {
  return [...ageTexts(items), ...failureTexts(items)]
}

function failureTexts(items: readonly Workload[]): string[] {
  const failed = items.filter(({ lastError }) => lastError !== null)
  const named = failed
    .slice(0, MAX_NAMED)
    .map((one) => `${nameOf(one)}: the newest profile could not be computed: ${one.lastError}`)
  const more = failed.length - named.length
  return more > 0 ? [...named, `${counted(more, 'more workload')} could not be computed: see LAST ERROR`] : named
}

export const workloads = listing<{ items: readonly Workload[]; nextAfter: string | null }, Workload>({
  route: '/workloads',
  rowsOf: ({ items }) => items,
  nextOf: ({ nextAfter }) => nextAfter,
  columns: [
    { header: 'NAMESPACE', of: ({ namespace }) => namespace },
    { header: 'KIND', of: ({ kind }) => kind },
    { header: 'NAME', of: ({ name }) => name },
    {
      header: 'POSTURE',
      of: ({ posture }) => posture.status,
      colourOf: ({ posture }) => COLOURS[posture.status] ?? null,
    },
    { header: 'CRITICAL', of: ({ findingCounts }) => findingCounts?.critical },
    { header: 'HIGH', of: ({ findingCounts }) => findingCounts?.high },
    { header: 'MEDIUM', of: ({ findingCounts }) => findingCounts?.medium },
    { header: 'NETWORK', of: ({ dimensions }) => dimensions.network.status },
    { header: 'SYSCALLS', of: ({ dimensions }) => dimensions.syscalls.status },
    { header: 'POD SECURITY', of: ({ dimensions }) => dimensions.podSecurity.status },
    { header: 'IMAGES', of: ({ dimensions }) => dimensions.images.status },
    { header: 'DRIFT', of: ({ drift }) => drift?.count },
    { header: 'REVISION', of: ({ revision }) => revision },
    { header: 'LAST CHANGED', of: ({ lastChangedAt }) => lastChangedAt, isTime: true },
    { header: 'LOW', of: ({ findingCounts }) => findingCounts?.low, isWide: true },
    { header: 'COMPUTE', of: ({ dimensions }) => dimensions.compute.status, isWide: true },
    { header: 'LEVEL', of: ({ dimensions }) => dimensions.podSecurity.level, isWide: true },
    { header: 'SIGNATURE', of: ({ dimensions }) => dimensions.images.signature, isWide: true },
    { header: 'DIGESTS', of: ({ dimensions }) => dimensions.images.runningDigests, isWide: true },
    { header: 'COMPUTED', of: ({ computedAt }) => computedAt, isTime: true, isWide: true },
    { header: 'LAST ERROR', of: ({ lastError }) => lastError, isWide: true },
  ],
  nameOf,
  said: saidOf,
  brief: 'List workloads with their posture, findings and drift, as the job stored them last',
  description: ['Unknown is never ok: what nobody has observed has the state unknown.'],
})
