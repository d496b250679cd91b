import { listing, namespaceFlag } from '../list/listing.ts'

interface SeccompProfile {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly hash: string
  readonly syscallCount: number
  readonly architectures: readonly string[]
  readonly updatedAt: string
  readonly capture: { readonly level: string; readonly complete: boolean; readonly incomplete: number }
  readonly cr: {
    readonly name: string
    readonly defaultAction: string
    readonly distribution: { readonly state: string }
    readonly drift: { readonly missing: readonly string[]; readonly extra: readonly string[] }
  } | null
  readonly denials: { readonly total: number } | null
}

export const seccompProfiles = listing<readonly SeccompProfile[], SeccompProfile>({
  route: '/seccomp/profiles',
  flags: { namespace: namespaceFlag('Only workloads of this namespace.') },
  read: (_, { namespace }, page) => {
    if (namespace === undefined) return page
    const answer = page.answer.filter((one) => one.namespace === namespace)
    return { bytes: Buffer.from(JSON.stringify(answer)), answer }
  },
  rowsOf: (answer) => answer,
  columns: [
    { header: 'NAMESPACE', of: ({ namespace }) => namespace },
    { header: 'KIND', of: ({ kind }) => kind },
    { header: 'NAME', of: ({ name }) => name },
    { header: 'SYSCALLS', of: ({ syscallCount }) => syscallCount },
    { header: 'CAPTURE', of: ({ capture }) => capture.level },
    {
      header: 'COMPLETE',
      of: ({ capture }) => capture.complete,
      colourOf: ({ capture }) => (capture.complete ? null : 'yellow'),
    },
    { header: 'RESOURCE', of: ({ cr }) => cr?.name },
    { header: 'MISSING', of: ({ cr }) => cr?.drift.missing.length },
    {
      header: 'DENIALS',
      of: ({ denials }) => denials?.total,
      colourOf: ({ denials }) => (denials !== null && denials.total > 0 ? 'red' : null),
    },
    { header: 'UPDATED', of: ({ updatedAt }) => updatedAt, isTime: true },
    { header: 'ACTION', of: ({ cr }) => cr?.defaultAction, isWide: true },
    { header: 'EXTRA', of: ({ cr }) => cr?.drift.extra.length, isWide: true },
    { header: 'DISTRIBUTION', of: ({ cr }) => cr?.distribution.state, isWide: true },
    { header: 'ARCHITECTURES', of: ({ architectures }) => architectures, isWide: true },
    { header: 'HASH', of: ({ hash }) => hash, isWide: true },
  ],
  nameOf: ({ namespace, kind, name }) => `${namespace}/${kind}/${name}`,
  said: (answer) => {
    const unknown = answer.filter(({ denials }) => denials === null).length
    return unknown === 0 ? [] : [`denials are not known of ${unknown} of ${answer.length}: ctb coverage says why`]
  },
  brief: 'List the syscalls that were observed, by workload, against the resources that were applied',
  description: ['MISSING were observed and are not allowed by the resource. DENIALS are verdicts of the kernel.'],
})
