/** Words and badges for vulnerabilities and images. */
import type { Answer } from '../api/client.ts'
import { href } from '../place.ts'
import { Badge, type Tone } from './text.tsx'

type Vulnerability = Answer<'/vulnerabilities'>['items'][number]
type Finding = Answer<'/images/{digest}/vulnerabilities'>['items'][number]
export type UseState = Vulnerability['inUseState']
export type UseReason = NonNullable<Finding['inUseDetail']['reason']>
export type Tier = Vulnerability['tier']
export type Join = Answer<'/images/{digest}/vulnerabilities'>['reports'][number]['join']

interface Word {
  readonly word: string
  readonly tone: Tone
  readonly meaning: string
}

const USE: Readonly<Record<UseState, Word>> = {
  executed: { word: 'executed', tone: 'bad', meaning: 'A container executed a file of the package.' },
  loaded: {
    word: 'loaded',
    tone: 'warn',
    meaning: 'A container loaded a file of the package; none was seen to execute one.',
  },
  unknown: { word: 'not known', tone: 'plain', meaning: 'Whether a container uses the package is not known.' },
  installed_not_observed: {
    word: 'not seen in use',
    tone: 'good',
    meaning: 'All containers were watched for the whole window, and none used a file of the package.',
  },
}

const USE_REASONS: Readonly<Record<UseReason, string>> = {
  no_runtime_data: 'no agent watches its containers',
  probes_missing: 'an agent lacks the probe for executed files',
  libraries_not_tracked: 'an agent does not track libraries',
  capture_gap: 'its containers were not watched for the whole window',
  language_package: 'files do not tell whether such a package is used',
  no_package_files: 'no scanner lists the files of the package',
  sbom_incomplete: 'the list of its files may be cut',
}

export const useMeaning = (state: UseState) => USE[state].meaning
export const useReasonText = (reason: UseReason) => USE_REASONS[reason]

/** Whether a container used the package, and the reason if that is not known. */
export function InUse({ state, reason = null }: { state: UseState; reason?: UseReason | null }) {
  const { word, tone, meaning } = USE[state]
  const why = reason === null ? '' : `: ${USE_REASONS[reason]}`
  return (
    <Badge tone={tone} title={why === '' ? meaning : `${meaning.slice(0, -1)}${why}.`}>
      {word}
    </Badge>
  )
}

const TIERS: Readonly<Record<NonNullable<Tier>, Word>> = {
  P0: { word: 'P0', tone: 'bad', meaning: 'Exploited or likely to be, and exposed, or not known to be unexposed.' },
  P1: { word: 'P1', tone: 'warn', meaning: 'Exploited or likely to be, or critical or high.' },
  P2: { word: 'P2', tone: 'info', meaning: 'Of lower severity, or high without a fix and not exposed.' },
  Background: { word: 'Background', tone: 'plain', meaning: 'No container was seen to use the package.' },
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

const FACTORS: Readonly<Record<string, string>> = {
  kev: 'known to be exploited',
  exposed: 'reached from other namespaces or unknown peers',
  'exposed:node_only': 'reached only by nodes and its own namespace',
  internal: 'reached only from its own namespace, as far as seen',
  'exposure:unknown': 'exposure not known, which counts as exposed unless the broker is set otherwise',
  no_fix: 'no fixed version is known',
}

/** A factor of a tier, in words. */
export function factorText(factor: string): string {
  const [name = '', value = ''] = factor.split(':')
  if (name === 'in_use') return `package ${USE[value as UseState]?.word ?? value}`
  if (name === 'severity') return `severity ${value.toLowerCase()}`
  if (factor.startsWith('epss>=')) return `EPSS of ${factor.slice('epss>='.length)} or more`
  return FACTORS[factor] ?? factor
}

/** Whether it is known to be exploited; a dash if no source says so. */
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

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumSignificantDigits: 2 })

/** The probability of exploitation within 30 days. */
export function Epss({ value }: { value: number | null }) {
  if (value === null)
    return (
      <span class="faint" title="not known">
        ?
      </span>
    )
  return <span class="number">{percent.format(value)}</span>
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

export const VERDICTS: Readonly<Record<string, Word>> = {
  verified: { word: 'verified', tone: 'good', meaning: 'A signature verified. Valid is not trusted: see its signer.' },
  key_signed: {
    word: 'unknown key',
    tone: 'warn',
    meaning: 'Signed with a public key that the checker was not given.',
  },
  unsigned: { word: 'unsigned', tone: 'warn', meaning: 'No signature was found, and every look-up answered.' },
  invalid: { word: 'invalid', tone: 'bad', meaning: 'Signatures exist, and none verified.' },
  unknown: { word: 'could not be checked', tone: 'plain', meaning: 'It could not be checked, which is not unsigned.' },
}

/** The result of checking an image for signatures; null means not checked, or no longer stored. */
export function VerdictBadge({ verdict }: { verdict: string | null }) {
  const { word, tone, meaning } = VERDICTS[verdict ?? ''] ?? {
    word: verdict ?? 'not checked',
    tone: 'plain',
    meaning: 'No result of a check is kept, which is not unsigned.',
  }
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
