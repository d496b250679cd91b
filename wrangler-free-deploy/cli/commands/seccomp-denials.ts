import { limitOf, listing } from '../list/listing.ts'

interface Denial {
  readonly podName: string
  readonly podNamespace: string
  readonly workloadKind: string | null
  readonly workloadName: string | null
  readonly nodeName: string | null
  readonly syscall: string
  readonly action: string
  readonly arch: string | null
  readonly count: number
  readonly firstSeen: string
  readonly lastSeen: string
}

const MAX_ROWS = 500

export const seccompDenials = listing<readonly Denial[], Denial>({
  route: '/seccomp/denials',
  rowsOf: (answer) => answer,
  // There is one page, which does not tell whether it is cut.
  nextOf: () => null,
  read: (context, flags, page) => {
    const limit = limitOf(flags)
    if (limit !== null && limit < MAX_ROWS && page.answer.length === limit)
      context.say('there may be more: see --limit')
    return page
  },
  columns: [
    { header: 'NAMESPACE', of: ({ podNamespace }) => podNamespace },
    {
      header: 'WORKLOAD',
      of: ({ workloadKind, workloadName }) => (workloadKind === null ? null : `${workloadKind}/${workloadName}`),
    },
    { header: 'POD', of: ({ podName }) => podName },
    { header: 'SYSCALL', of: ({ syscall }) => syscall },
    { header: 'ACTION', of: ({ action }) => action },
    { header: 'COUNT', of: ({ count }) => count },
    { header: 'LAST SEEN', of: ({ lastSeen }) => lastSeen, isTime: true },
    { header: 'FIRST SEEN', of: ({ firstSeen }) => firstSeen, isTime: true, isWide: true },
    { header: 'NODE', of: ({ nodeName }) => nodeName, isWide: true },
    { header: 'ARCHITECTURE', of: ({ arch }) => arch, isWide: true },
  ],
  nameOf: ({ podNamespace, workloadKind, workloadName, podName }) =>
    `${podNamespace}/${workloadKind ?? 'Pod'}/${workloadName ?? podName}`,
  said: ({ length }) =>
    length < MAX_ROWS ? [] : [`the broker lists at most ${MAX_ROWS}: narrow it with --namespace or --last`],
  brief: 'List syscalls that the kernel denied',
  description: ['An empty list does not say that somebody watched: ctb coverage --part nodes does.'],
})
