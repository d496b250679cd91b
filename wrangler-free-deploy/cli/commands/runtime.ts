import { listing } from '../list/listing.ts'
import { counted } from '../output/lines.ts'
import { ORIGIN_COLOURS, type ReasonDetail, reasonText } from '../runtime/reason.ts'

interface Entry {
  readonly path: string
  readonly kind: string
  readonly origin: string
  readonly source: string
  readonly pathComplete: boolean
  readonly firstSeen: string
  readonly lastSeen: string
}

interface Runtime {
  readonly containers: readonly {
    readonly containerName: string
    readonly imageDigest: string
    readonly entries: readonly Entry[]
  }[]
  readonly truncated: boolean
  readonly coverage: readonly {
    readonly containerName: string
    readonly covered: boolean
    readonly reason: string | null
    readonly reasonDetail: ReasonDetail | null
    readonly windowHours: number
    /** Absent where there is none. */
    readonly silentPods?: readonly string[]
    readonly silentPodCount?: number
  }[]
}

interface Row extends Entry {
  readonly containerName: string
  readonly imageDigest: string
}

function saidOf({ containers, coverage, truncated }: Runtime): string[] {
  const lines = coverage.flatMap(({ containerName, covered, windowHours, silentPods, silentPodCount = 0, ...one }) => [
    ...(covered
      ? []
      : [
          `${containerName}: not covered for ${counted(windowHours, 'hour')}: ` +
            reasonText(one.reason, one.reasonDetail),
        ]),
    ...(silentPods === undefined
      ? []
      : [`${containerName}: agents of ${counted(silentPodCount, 'pod')} fell silent: ${silentPods.join(', ')}`]),
  ])
  const watched = new Set(coverage.map(({ containerName }) => containerName))
  for (const { containerName } of containers)
    if (!watched.has(containerName)) lines.push(`${containerName}: not covered: no_runtime_data`)
  if (coverage.length === 0) lines.push('no agent watches this workload: no file here does not mean that nothing ran')
  if (truncated) lines.push('the list is cut: see --limit, --container and --kind')
  return lines
}

export const runtime = listing<Runtime, Row>({
  route: '/workloads/{namespace}/{kind}/{name}/runtime',
  rowsOf: ({ containers }) =>
    containers.flatMap(({ entries, containerName, imageDigest }) =>
      entries.map((entry) => ({ containerName, imageDigest, ...entry })),
    ),
  // There is one page.
  nextOf: () => null,
  columns: [
    { header: 'CONTAINER', of: ({ containerName }) => containerName },
    { header: 'KIND', of: ({ kind }) => kind },
    { header: 'PATH', of: ({ path }) => path },
    { header: 'ORIGIN', of: ({ origin }) => origin, colourOf: ({ origin }) => ORIGIN_COLOURS[origin] ?? null },
    { header: 'FIRST SEEN', of: ({ firstSeen }) => firstSeen, isTime: true },
    { header: 'LAST SEEN', of: ({ lastSeen }) => lastSeen, isTime: true },
    { header: 'WHOLE PATH', of: ({ pathComplete }) => pathComplete, isWide: true },
    { header: 'SOURCE', of: ({ source }) => source, isWide: true },
    { header: 'DIGEST', of: ({ imageDigest }) => imageDigest, isWide: true },
  ],
  nameOf: ({ path }) => path,
  said: saidOf,
  brief: 'List the files that ran in the containers of a workload, and the libraries they loaded',
  description: ['A missing file is evidence only where its container is covered.'],
})
