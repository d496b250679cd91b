import { ask } from '../connection/ask.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { type ListFlags, listing } from '../list/listing.ts'
import { counted } from '../output/lines.ts'
import { answerOf } from '../output/show.ts'
import { waitColumn } from '../output/units.ts'

interface Pair {
  readonly ts: string
  readonly node: string
  readonly victim_container_uid: string
  readonly victim_namespace: string
  readonly culprit_kind: string
  readonly culprit_ref: string
  readonly count: number
  readonly wait_ns: number
}

interface Contention {
  readonly pairs: readonly Pair[]
  /** The names of live containers by uid, which the route does not have. */
  readonly names?: ReadonlyMap<string, string>
  /** The most pairs of a victim that were asked for. */
  readonly perVictim?: number
  /** Why fewer minutes were searched than were asked for. */
  readonly limits?: readonly string[]
}

interface Row {
  readonly namespace: string
  readonly victim: string
  readonly culpritKind: string
  readonly culprit: string
  readonly node: string
  readonly minutes: number
  readonly count: number
  readonly waitNs: number
  readonly lastSeen: string
}

/** The most pairs that the broker lists, of all victims and of one. */
const MAX_PAIRS = 10_000
const MAX_PAIRS_OF_VICTIM = 50
/** The most minutes that it searches for a pod, and where no node is named. */
const MAX_MINUTES_OF_POD = 360
const MAX_MINUTES_WITHOUT_NODE = 60

/** The minutes of a victim and a culprit as one row, the longest wait first. */
function rowsOf({ pairs, names }: Contention): readonly Row[] {
  const rows = new Map<string, Row>()
  for (const pair of pairs) {
    const { victim_container_uid: uid, culprit_kind: culpritKind, culprit_ref: culprit, node } = pair
    const key = JSON.stringify([uid, culpritKind, culprit, node])
    const before = rows.get(key)
    rows.set(key, {
      ...{ namespace: pair.victim_namespace, victim: names?.get(uid) ?? uid, culpritKind, culprit, node },
      minutes: (before?.minutes ?? 0) + 1,
      count: (before?.count ?? 0) + pair.count,
      waitNs: (before?.waitNs ?? 0) + pair.wait_ns,
      lastSeen: before !== undefined && before.lastSeen > pair.ts ? before.lastSeen : pair.ts,
    })
  }
  return [...rows.values()].sort((a, b) => b.waitNs - a.waitNs)
}

function limitsOf({ node, podUid, minutes = '' }: ListFlags): string[] {
  const asked = Number(minutes)
  if (podUid !== undefined)
    return asked > MAX_MINUTES_OF_POD ? [`the broker looks back ${MAX_MINUTES_OF_POD} minutes at most for a pod`] : []
  return node === undefined && asked > MAX_MINUTES_WITHOUT_NODE
    ? [`the broker looks back ${MAX_MINUTES_WITHOUT_NODE} minutes at most without --node`]
    : []
}

/** Everything that makes sums too low. */
function saidOf({ pairs, perVictim = MAX_PAIRS_OF_VICTIM, limits = [] }: Contention): string[] {
  const counts = new Map<string, number>()
  for (const { victim_container_uid: uid } of pairs) counts.set(uid, (counts.get(uid) ?? 0) + 1)
  const full = [...counts.values()].filter((count) => count >= perVictim).length
  return [
    ...limits,
    ...(pairs.length < MAX_PAIRS
      ? []
      : [`the broker lists ${MAX_PAIRS} minutes at most: narrow it with --node or --minutes`]),
    ...(full === 0
      ? []
      : [
          `of ${counted(full, 'victim')} only the ${counted(perVictim, 'longest wait')} may be listed and added up, ` +
            'each a minute of one culprit: narrow it with --minutes',
        ]),
  ]
}

interface Latest {
  readonly containers: readonly {
    readonly container_uid: string
    readonly pod_name: string
    readonly container: string
  }[]
}

async function namesOf(context: CliContext, flags: ListFlags, namespace: string): Promise<[string, string][]> {
  const bytes = await ask(context, flags, {
    ...{ method: 'GET', path: ['compute', 'latest'], query: { namespace }, expects: 'application/json' },
  })
  return answerOf<Latest>(bytes).containers.map((one) => [one.container_uid, `${one.pod_name}/${one.container}`])
}

export const contention = listing<Contention, Row>({
  route: '/compute/contention',
  askedOf: (_, { namespace, node, podUid }) => {
    if (namespace === undefined && node === undefined && podUid === undefined)
      throw new Failure('expected --namespace, --node or --pod-uid', EXIT.usage)
    return { path: ['compute', 'contention'], query: {} }
  },
  read: async (context, flags, { bytes, answer: { pairs } }) => {
    const namespaces = new Set(pairs.map(({ victim_namespace }) => victim_namespace))
    const names: [string, string][] = []
    for (const namespace of namespaces) names.push(...(await namesOf(context, flags, namespace)))
    const perVictim = Math.min(Math.max(Number(flags.perVictim ?? MAX_PAIRS_OF_VICTIM), 1), MAX_PAIRS_OF_VICTIM)
    return { bytes, answer: { pairs, names: new Map(names), perVictim, limits: limitsOf(flags) } }
  },
  rowsOf,
  columns: [
    { header: 'NAMESPACE', of: ({ namespace }) => namespace },
    { header: 'VICTIM', of: ({ victim }) => victim },
    { header: 'CULPRIT', of: ({ culprit }) => culprit },
    { header: 'COUNT', of: ({ count }) => count },
    waitColumn('WAIT', ({ waitNs }) => waitNs),
    { header: 'MINUTES', of: ({ minutes }) => minutes },
    { header: 'LAST SEEN', of: ({ lastSeen }) => lastSeen, isTime: true },
    { header: 'CULPRIT KIND', of: ({ culpritKind }) => culpritKind, isWide: true },
    { header: 'NODE', of: ({ node }) => node, isWide: true },
  ],
  nameOf: ({ namespace, victim }) => `${namespace}/${victim}`,
  said: saidOf,
  brief: 'Show which containers waited for a processor, and for whom',
  description: [
    'Needs --namespace, --node or --pod-uid. ' +
      'A row adds up the minutes of a victim and a culprit; -o json has each minute.',
    'An empty list says something only where nodes have the contention probe: see ctb nodes.',
  ],
})
