import { listing } from '../list/listing.ts'
import { counted } from '../output/lines.ts'
import { imageText, yesNo } from '../output/words.ts'

interface Image {
  readonly digest: string
  readonly repository: string | null
  readonly tags: readonly string[]
}

interface Affected {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly container: string
  readonly imageDigest: string
  readonly join: string
  readonly running: boolean
  readonly lastSeen: string
  readonly inUseState: string
  readonly network: {
    readonly windowHours: number
    readonly flowsObserved: number
    readonly exposed: boolean | null
    readonly exposedVia: readonly string[]
  }
}

interface Exposure {
  readonly id: string
  readonly aliases: readonly string[]
  readonly severity: string
  readonly fixable: boolean
  readonly images: readonly Image[]
  readonly workloads: readonly Affected[]
  readonly namespaces: readonly {
    readonly namespace: string
    readonly workloads: number
    readonly runningWorkloads: number
    readonly exposedWorkloads: number
    readonly unknownExposureWorkloads: number
  }[]
  readonly truncatedLists: readonly string[]
}

/** Namespaces that are said one by one. */
const MAX_NAMESPACES = 20

export const exposure = listing<Exposure, Affected & { readonly image: string }>({
  route: '/vulnerabilities/{id}/exposure',
  argument: { placeholder: 'CVE', brief: 'The id of a vulnerability, or one of its aliases.' },
  askedOf: (id) => ({ path: ['vulnerabilities', id, 'exposure'], query: {} }),
  rowsOf: ({ workloads, images }) => {
    const names = new Map(images.map((image) => [image.digest, imageText(image)]))
    return workloads.map((row) => ({ ...row, image: names.get(row.imageDigest) ?? row.imageDigest }))
  },
  columns: [
    { header: 'NAMESPACE', of: ({ namespace }) => namespace },
    { header: 'WORKLOAD', of: ({ kind, name }) => `${kind}/${name}` },
    { header: 'CONTAINER', of: ({ container }) => container },
    { header: 'RUNNING', of: ({ running }) => yesNo(running) },
    { header: 'IN USE', of: ({ inUseState }) => inUseState },
    {
      header: 'EXPOSED',
      of: ({ network }) => yesNo(network.exposed),
      colourOf: ({ network }) => (network.exposed === true ? 'red' : null),
    },
    { header: 'VIA', of: ({ network }) => network.exposedVia },
    { header: 'IMAGE', of: ({ image }) => image },
    { header: 'FLOWS', of: ({ network }) => network.flowsObserved, isWide: true },
    { header: 'JOIN', of: ({ join }) => join, isWide: true },
    { header: 'LAST SEEN', of: ({ lastSeen }) => lastSeen, isTime: true, isWide: true },
    { header: 'DIGEST', of: ({ imageDigest }) => imageDigest, isWide: true },
  ],
  nameOf: ({ namespace, kind, name }) => `${namespace}/${kind}/${name}`,
  said: (answer) => [
    summaryOf(answer),
    ...namespaceTexts(answer),
    ...idleTexts(answer),
    ...answer.truncatedLists.map((list) => `the list of ${list} is cut: there are more`),
  ],
  brief: 'Show where a vulnerability runs and what reaches it',
  description: ['Exposed is a container that was reached by more than its own namespace; unknown is not no.'],
})

function namespaceTexts({ namespaces }: Exposure): string[] {
  const said = namespaces
    .slice(0, MAX_NAMESPACES)
    .map(
      ({ namespace, workloads, runningWorkloads, exposedWorkloads, unknownExposureWorkloads }) =>
        `${namespace}: ${counted(workloads, 'workload')}, ${runningWorkloads} running, ${exposedWorkloads} exposed, ` +
        `exposure of ${unknownExposureWorkloads} unknown`,
    )
  const more = namespaces.length - said.length
  return more > 0 ? [...said, `${counted(more, 'more namespace')}`] : said
}

function summaryOf({ id, aliases, severity, fixable, images }: Exposure): string {
  const known = aliases.length > 0 ? ` (${aliases.join(', ')})` : ''
  return `${id}${known}: ${severity}, ${fixable ? 'with a fix' : 'no fix known'}, in ${counted(images.length, 'image')}`
}

/** Images that are in no row. */
function idleTexts({ images, workloads, truncatedLists }: Exposure): string[] {
  if (truncatedLists.length > 0) return []
  const used = new Set(workloads.map(({ imageDigest }) => imageDigest))
  const idle = images.filter(({ digest }) => !used.has(digest)).length
  return idle > 0 ? [`${counted(idle, 'image')} of these without a workload`] : []
}
