import { listing } from '../list/listing.ts'
import { gapTexts } from '../list/not-covered.ts'
import { firstOf, imageText, yesNo } from '../output/words.ts'

interface HeldComponent {
  readonly name: string
  readonly version: string | null
  readonly purl: string | null
  readonly type: string | null
  readonly evidence: string
  readonly imageDigest: string
  readonly repository: string | null
  readonly tags: readonly string[]
  readonly running: boolean
  readonly join: string
  readonly sources: readonly string[]
  readonly workloads: readonly { readonly namespace: string; readonly kind: string; readonly name: string }[]
  readonly workloadCount: number
  readonly inUseState: string
  readonly inUseDetail: { readonly reason: string | null }
}

interface ComponentPage {
  readonly items: readonly HeldComponent[]
  readonly nextAfter: string | null
  readonly notCovered: number
  readonly notRead: number
}

export const components = listing<ComponentPage, HeldComponent>({
  route: '/components',
  rowsOf: ({ items }) => items,
  nextOf: ({ nextAfter }) => nextAfter,
  columns: [
    { header: 'NAME', of: ({ name }) => name },
    { header: 'VERSION', of: ({ version }) => version },
    { header: 'RUNNING', of: ({ running }) => yesNo(running) },
    { header: 'IN USE', of: ({ inUseState }) => inUseState },
    {
      header: 'IMAGE',
      of: ({ repository, tags, imageDigest }) => imageText({ repository, tags, digest: imageDigest }),
    },
    {
      header: 'WORKLOADS',
      of: ({ workloads, workloadCount }) =>
        firstOf(
          workloads.map(({ namespace, kind, name }) => `${namespace}/${kind}/${name}`),
          workloadCount,
        ),
    },
    { header: 'TYPE', of: ({ type }) => type, isWide: true },
    { header: 'EVIDENCE', of: ({ evidence }) => evidence, isWide: true },
    { header: 'WHY USE UNKNOWN', of: ({ inUseDetail }) => inUseDetail.reason, isWide: true },
    { header: 'JOIN', of: ({ join }) => join, isWide: true },
    { header: 'SOURCES', of: ({ sources }) => sources, isWide: true },
    { header: 'PURL', of: ({ purl }) => purl, isWide: true },
    { header: 'DIGEST', of: ({ imageDigest }) => imageDigest, isWide: true },
  ],
  nameOf: ({ imageDigest }) => imageDigest,
  said: ({ items, ...gaps }) => [
    ...(items.some(({ evidence }) => evidence === 'findings')
      ? ['some are known by reports of vulnerabilities only, which do not list all that an image contains']
      : []),
    ...gapTexts(gaps),
  ],
  usage: ['--name NAME [flags]', '--purl URL [flags]'],
  brief: 'Find the images and workloads that hold a package, by its name or package URL',
})
