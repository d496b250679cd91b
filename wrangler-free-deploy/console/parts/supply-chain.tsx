/** Words and badges for vulnerabilities and images. */
import type { Answer } from '../api/client.ts'
import { href } from '../place.ts'
import { percentText, TIERS, USES, type UseState, verdictWord, type Word } from './finding-words.ts'
import { reasonText } from './reason-words.ts'
import { Badge } from './text.tsx'

type Vulnerability = Answer<'/vulnerabilities'>['items'][number]
type Finding = Answer<'/images/{digest}/vulnerabilities'>['items'][number]
export type UseReason = NonNullable<Finding['inUseDetail']['reason']>
export type Tier = Vulnerability['tier']
export type Join = Answer<'/images/{digest}/vulnerabilities'>['reports'][number]['join']

/** Whether a container used the package, and the reason if that is not known. */
export function InUse({ state, reason = null }: { state: UseState; reason?: UseReason | null }) {
  const { word, tone, meaning } = USES[state]
  const why = reason === null ? '' : `: ${reasonText(reason)}`
  return (
    <Badge tone={tone} title={why === '' ? meaning : `${meaning.slice(0, -1)}${why}.`}>
      {word}
    </Badge>
  )
}

export function TierBadge({ tier }: { tier: Tier }) {
  if (tier === null) return <Badge title="The next pass of the job counts it.">not yet</Badge>
  const { word, tone, meaning } = TIERS[tier]
  return (
    <Badge tone={tone} title={meaning}>
      {word}
    </Badge>
  )
}

/** Whether it is known to be exploited; `?` if no source says so. */
export function Kev({ kev }: { kev: boolean | null }) {
  if (kev === true)
    return (
      <Badge tone="bad" title="In a list of known exploited vulnerabilities, as a scanner reports.">
        exploited
      </Badge>
    )
  const meaning = kev === null ? 'No scanner says whether it is exploited.' : 'A scanner says that it is not listed.'
  return (
    <span class="faint" title={meaning}>
      {kev === null ? '?' : 'no'}
    </span>
  )
}

/** The probability of exploitation within 30 days. */
export function Epss({ value }: { value: number | null }) {
  if (value === null)
    return (
      <span class="faint" title="not known">
        ?
      </span>
    )
  return <span class="number">{percentText(value)}</span>
}

const JOINS: Readonly<Record<Join, Word>> = {
  image_id: { word: 'digest', tone: 'plain', meaning: 'The report has the digest that the node reports.' },
  platform_manifest: {
    word: 'index',
    tone: 'plain',
    meaning: 'The digest is that of the index, or of a platform, that the report is about.',
  },
  workload_tag: {
    word: 'guess by tag',
    tone: 'warn',
    meaning: 'No report has the digest: this one has the same repository and tag, which may have moved.',
  },
  report_digest: {
    word: 'not in the inventory',
    tone: 'plain',
    meaning: 'The report has this digest, and no image of the inventory does.',
  },
}

/** How a report was matched to an image. */
export function JoinBadge({ join }: { join: Join }) {
  const { word, tone, meaning } = JOINS[join]
  return (
    <Badge tone={tone} title={meaning}>
      {word}
    </Badge>
  )
}

/** The result of checking an image for signatures; null means not checked, or no longer stored. */
export function VerdictBadge({ verdict }: { verdict: string | null }) {
  const { word, tone, meaning } = verdictWord(verdict)
  return (
    <Badge tone={tone} title={meaning}>
      {word}
    </Badge>
  )
}

export interface NamedImage {
  readonly digest: string
  readonly repository: string | null
  readonly tags: readonly string[]
}

/** `repository:tag`, or a shortened digest if no name is known. */
export function imageName({ digest, repository, tags }: NamedImage): string {
  if (repository === null) return digest.slice(0, 'sha256:'.length + 12)
  return tags[0] === undefined ? repository : `${repository}:${tags[0]}`
}

/** The name of an image as a link, with the number of further tags. */
export function ImageLink({ image }: { image: NamedImage }) {
  const more = image.tags.length - 1
  return (
    <>
      <a href={href(['image', image.digest])} title={image.digest}>
        {imageName(image)}
      </a>
      {more > 0 && (
        <span class="faint" title={image.tags.slice(1).join(', ')}>
          {' '}
          and {more} more {more === 1 ? 'tag' : 'tags'}
        </span>
      )}
    </>
  )
}

export function VulnerabilityLink({ id, aliases = [] }: { id: string; aliases?: readonly string[] }) {
  return (
    <a
      class="nowrap"
      href={href(['vulnerability', id])}
      title={aliases.length === 0 ? undefined : `Also ${aliases.join(', ')}`}
    >
      {id}
    </a>
  )
}
