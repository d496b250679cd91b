import { listing } from '../list/listing.ts'

interface Image {
  readonly digest: string
  readonly repository: string | null
  readonly tags: readonly string[]
  readonly digestKind: string
  readonly firstSeen: string
  readonly lastSeen: string
  readonly runningContainers: number
}

export const images = listing<{ items: readonly Image[]; nextAfter: string | null }, Image>({
  route: '/images',
  rowsOf: ({ items }) => items,
  nextOf: ({ nextAfter }) => nextAfter,
  columns: [
    { header: 'REPOSITORY', of: ({ repository }) => repository },
    { header: 'TAGS', of: ({ tags }) => tags },
    { header: 'RUNNING', of: ({ runningContainers }) => runningContainers },
    { header: 'LAST SEEN', of: ({ lastSeen }) => lastSeen, isTime: true },
    { header: 'DIGEST', of: ({ digest }) => digest },
    { header: 'KIND', of: ({ digestKind }) => digestKind, isWide: true },
    { header: 'FIRST SEEN', of: ({ firstSeen }) => firstSeen, isTime: true, isWide: true },
  ],
  nameOf: ({ digest }) => digest,
  brief: 'List images that run or ran, with the containers that run them',
})
