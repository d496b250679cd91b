import { ask } from '../connection/ask.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { type ListFlags, listing } from '../list/listing.ts'
import { counted } from '../output/lines.ts'
import { answerOf } from '../output/show.ts'
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
  readonly namespace: string
  readonly kind: string
  readonly name: string
  /** The containers that run, as the inventory of images has them. */
  readonly running?: readonly string[]
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

function saidOf({ containers, coverage, truncated, running = [] }: Runtime): string[] {
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
  for (const name of new Set([...containers.map(({ containerName }) => containerName), ...running]))
    if (!watched.has(name)) lines.push(`${name}: not covered: no_runtime_data`)
  if (coverage.length === 0) lines.push('no agent watches this workload: no file here does not mean that nothing ran')
  if (truncated) lines.push('the list is cut: see --limit, --container and --kind')
  return lines
}

/** A container that runs and that nobody watches is in no list of the route. */
async function runningOf(
  context: CliContext,
  flags: ListFlags,
  { namespace, kind, name }: Pick<Runtime, 'namespace' | 'kind' | 'name'>,
): Promise<string[]> {
  const path = ['workloads', namespace, kind, name, 'containers']
  try {
    const bytes = await ask(context, flags, { method: 'GET', path, query: {}, expects: 'application/json' })
    const { containers } = answerOf<{ containers: { containerName: string; digests: unknown[] }[] }>(bytes)
    const running = containers.filter(({ digests }) => digests.length > 0).map(({ containerName }) => containerName)
    return running.filter((one) => flags.container === undefined || one === flags.container)
  } catch (error) {
    if (error instanceof Failure && error.exitCode === EXIT.notFound) return []
    throw error
  }
}

export const runtime = listing<Runtime, Row>({
  route: '/workloads/{namespace}/{kind}/{name}/runtime',
  read: async (context, flags, { bytes, answer }) => ({
    bytes,
    answer: { ...answer, running: await runningOf(context, flags, answer) },
  }),
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
