import { listing } from '../list/listing.ts'
import type { Colour } from '../output/cell.ts'
import { delayColumn, percentColumn, shareColumn } from '../output/units.ts'

interface Finding {
  readonly kind: string
  readonly severity: 'critical' | 'high' | 'medium'
  readonly victim: {
    readonly namespace: string
    readonly pod_name: string
    readonly container: string
    readonly node: string
  }
  readonly culprit: { readonly ref: string } | null
  readonly evidence: {
    readonly cpu_psi_some10_max: number
    readonly runq_p99_us_max: number | null
    readonly throttled_ratio: number
    readonly mem_psi_some10_max: number
  }
  readonly first_seen: string
  readonly last_seen: string
  readonly message: string
}

interface Findings {
  readonly findings: readonly Finding[]
  readonly truncated: boolean
  readonly victims_evaluated: number
  readonly history_disabled: boolean
}

const COLOURS: Readonly<Record<string, Colour>> = { critical: 'red', high: 'red', medium: 'yellow' }

function saidOf({
  findings,
  truncated,
  victims_evaluated: evaluated,
  history_disabled: isDisabled,
}: Findings): string[] {
  if (isDisabled) return ['the broker keeps no compute history, so it finds nothing']
  return [
    ...(truncated ? ['not everything was searched: ask for a --namespace or a --node'] : []),
    ...(evaluated === 0 && findings.length === 0
      ? ['no container has reported within five minutes: see ctb nodes']
      : []),
  ]
}

export const findings = listing<Findings, Finding>({
  route: '/compute/findings',
  rowsOf: (answer) => answer.findings,
  columns: [
    { header: 'KIND', of: ({ kind }) => kind },
    { header: 'SEVERITY', of: ({ severity }) => severity, colourOf: ({ severity }) => COLOURS[severity] ?? null },
    { header: 'VICTIM', of: ({ victim }) => `${victim.namespace}/${victim.pod_name}/${victim.container}` },
    { header: 'CULPRIT', of: ({ culprit }) => culprit?.ref },
    { header: 'LAST SEEN', of: ({ last_seen }) => last_seen, isTime: true },
    { header: 'FIRST SEEN', of: ({ first_seen }) => first_seen, isTime: true, isWide: true },
    { header: 'NODE', of: ({ victim }) => victim.node, isWide: true },
    percentColumn('CPU PRESSURE', ({ evidence }) => evidence.cpu_psi_some10_max, { isWide: true }),
    percentColumn('MEMORY PRESSURE', ({ evidence }) => evidence.mem_psi_some10_max, { isWide: true }),
    delayColumn('RUN QUEUE P99', ({ evidence }) => evidence.runq_p99_us_max, { isWide: true }),
    shareColumn('THROTTLED', ({ evidence }) => evidence.throttled_ratio, { isWide: true }),
    { header: 'MESSAGE', of: ({ message }) => message, isSentence: true },
  ],
  nameOf: ({ victim }) => `${victim.namespace}/${victim.pod_name}/${victim.container}`,
  said: saidOf,
  brief: 'List containers that are short of CPU or memory now, and who causes it',
  description: ['Computed from the minutes of the last five.'],
})
