import { listing } from '../list/listing.ts'
import { counted } from '../output/lines.ts'
import { ORIGIN_COLOURS } from '../runtime/reason.ts'

interface File {
  readonly namespace: string
  readonly workloadKind: string
  readonly workloadName: string
  readonly containerName: string
  readonly imageDigest: string
  readonly path: string
  readonly kind: string
  readonly origin: string
  readonly firstSeen: string
  readonly lastSeen: string
  readonly lastPod: string | null
  readonly imageRunning: boolean | null
  readonly runningInstances: number
  readonly unwatchedInstances: number
}

interface Unshipped {
  readonly items: readonly File[]
  readonly nextAfter: string | null
  readonly watch: {
    readonly runningInstances: number
    readonly unwatchedInstances: number
    readonly reasons: Readonly<Record<string, number>>
    readonly podsWithoutContainerList: number
    readonly silentPods: number
  }
}

function saidOf({ watch }: Unshipped): string[] {
  const { runningInstances, unwatchedInstances, reasons, podsWithoutContainerList, silentPods = 0 } = watch
  const why = Object.entries(reasons)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => `${reason} ${count}`)
  return [
    ...(unwatchedInstances === 0
      ? []
      : [
          `${unwatchedInstances} of ${counted(runningInstances, 'running container')} are not watched, ` +
            `and nothing is known of what runs there: ${why.join(', ')}`,
        ]),
    ...(podsWithoutContainerList === 0
      ? []
      : [`the containers of ${counted(podsWithoutContainerList, 'live pod')} are not known`]),
    ...(silentPods === 0
      ? []
      : [`agents of ${counted(silentPods, 'pod')} fell silent, and nothing is known of what runs there since`]),
  ]
}

export const unshipped = listing<Unshipped, File>({
  route: '/runtime/unshipped',
  rowsOf: ({ items }) => items,
  nextOf: ({ nextAfter }) => nextAfter,
  columns: [
    { header: 'NAMESPACE', of: ({ namespace }) => namespace },
    { header: 'KIND', of: ({ workloadKind }) => workloadKind },
    { header: 'NAME', of: ({ workloadName }) => workloadName },
    { header: 'CONTAINER', of: ({ containerName }) => containerName },
    { header: 'PATH', of: ({ path }) => path },
    { header: 'ORIGIN', of: ({ origin }) => origin, colourOf: ({ origin }) => ORIGIN_COLOURS[origin] ?? null },
    { header: 'IMAGE RUNNING', of: ({ imageRunning }) => imageRunning },
    { header: 'FIRST SEEN', of: ({ firstSeen }) => firstSeen, isTime: true },
    { header: 'LAST SEEN', of: ({ lastSeen }) => lastSeen, isTime: true },
    { header: 'FILE', of: ({ kind }) => kind, isWide: true },
    { header: 'LAST POD', of: ({ lastPod }) => lastPod, isWide: true },
    { header: 'INSTANCES', of: ({ runningInstances }) => runningInstances, isWide: true },
    { header: 'UNWATCHED', of: ({ unwatchedInstances }) => unwatchedInstances, isWide: true },
    { header: 'DIGEST', of: ({ imageDigest }) => imageDigest, isWide: true },
  ],
  nameOf: ({ namespace, workloadKind, workloadName }) => `${namespace}/${workloadKind}/${workloadName}`,
  said: saidOf,
  brief: 'List files that ran and that no image shipped, the newest first',
  description: ['They were written after the container started, deleted while they ran, or never on a disk.'],
})
