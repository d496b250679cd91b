/** Differences between an image and a newer one. */
import type { ComponentChildren } from 'preact'
import { type Answer, addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { counted } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { imageName, VerdictBadge } from '../../parts/supply-chain.tsx'
import { Badge } from '../../parts/text.tsx'
import { Ago } from '../../parts/time.tsx'
import { href } from '../../place.ts'
import { Components, Files, Findings } from './diff-tables.tsx'

type ImageDiff = Answer<'/images/{digest}/diff/{other}'>
type Side = ImageDiff['signatures']['from']

export function Diff({ from, to }: { from: string; to: string }) {
  const asked = { path: { digest: from, other: to } }
  const reading = useRead('/images/{digest}/diff/{other}', asked)
  return (
    <>
      <h1>Compare two images</h1>
      <dl class="pairs">
        <dt>From</dt>
        <dd>
          <Named digest={from} />
        </dd>
        <dt>To</dt>
        <dd>
          <Named digest={to} />
        </dd>
      </dl>
      <div class="row">
        <a href={href(['image', to, 'diff', from])}>The other way round</a>
        <CopyAs ctb={['diff', from, to]} url={addressOf('/images/{digest}/diff/{other}', asked)} />
      </div>
      <Shown reading={reading}>{(diff) => <Parts diff={diff} />}</Shown>
    </>
  )
}

/** The name of an image; the comparison itself does not contain it. */
function Named({ digest }: { digest: string }) {
  const { data } = useRead('/search', { query: { q: digest, limit: 1 } }, { pollMs: 0 })
  const hit = data?.hits.find((one) => one.type === 'image')
  return (
    <>
      <a href={href(['image', digest])}>{hit?.type === 'image' ? imageName(hit) : digest.slice(0, 19)}</a>{' '}
      <code class="faint wrap">{digest}</code>
    </>
  )
}

function Parts({ diff }: { diff: ImageDiff }) {
  const { components, findings, signatures, files } = diff
  const whyNot = (part: ImageDiff['notKnown'][number]['part']) => reasonsOf(diff, part)
  return (
    <>
      <Part title="Findings" whyNot={whyNot('findings')} isKnown={findings !== null}>
        {findings && <Findings findings={findings} />}
      </Part>
      <Part title="Components" whyNot={whyNot('components')} isKnown={components !== null}>
        {components && <Components components={components} />}
      </Part>
      <Part title="Signatures" whyNot={whyNot('signatures')} isKnown>
        <div class="cards">
          <Signed title="From" side={signatures.from} />
          <Signed title="To" side={signatures.to} />
        </div>
      </Part>
      <Part title="Files that ran" whyNot={whyNot('files')} isKnown={files !== null}>
        {files && <Files files={files} />}
      </Part>
    </>
  )
}

const REASONS: Readonly<Record<string, string>> = {
  no_sbom: 'no SBOM is stored',
  no_report: 'no report is stored',
  no_common_source: 'no scanner has looked at both',
  not_checked: 'it was not checked',
  too_many: 'too many rows differ',
  no_inventory: 'no container is known to have run it',
  watched_too_short: 'it was not watched long enough',
  no_runtime_data: 'no agent watched its containers',
  probes_missing: 'an agent lacked the probe for executed files',
  libraries_not_tracked: 'an agent did not track libraries',
  events_dropped: 'an agent lost events',
  events_pending: 'an agent had events that were not sent yet',
  incomplete_paths: 'a path was cut',
  capture_gap: 'its containers were not watched all the time',
}

function reasonsOf({ from, to, notKnown }: ImageDiff, part: ImageDiff['notKnown'][number]['part']): readonly string[] {
  const texts = notKnown
    .filter((one) => one.part === part)
    .map(({ reason, container, digest }) => {
      const side = digest === from ? 'Older image: ' : digest === to ? 'Newer image: ' : ''
      return `${side}${REASONS[reason] ?? reason}${container === null ? '' : ` (container ${container})`}`
    })
  return [...new Set(texts)]
}

interface PartProps {
  readonly title: string
  readonly whyNot: readonly string[]
  readonly isKnown: boolean
  readonly children: ComponentChildren
}

function Part({ title, whyNot, isKnown, children }: PartProps) {
  const reasons = whyNot.length === 0 ? null : <p>{`${whyNot.join('; ')}.`}</p>
  return (
    <div class="section">
      <h2>{title}</h2>
      {isKnown ? (
        <>
          {children}
          {reasons && <div class="faint">{reasons}</div>}
        </>
      ) : (
        <Empty title="Not known, which is not unchanged">{reasons}</Empty>
      )}
    </div>
  )
}

function Signed({ title, side: { verdict, reason, signers, checkedAt } }: { title: string; side: Side }) {
  return (
    <div class="card">
      <h3>{title}</h3>
      <p>
        <VerdictBadge verdict={verdict} />{' '}
        {checkedAt !== null && (
          <span class="faint">
            checked <Ago at={checkedAt} />
          </span>
        )}
      </p>
      {reason !== null && <p class="faint">{reason}</p>}
      <ul class="plain-list">
        {signers.map((one, index) => (
          <li key={index} class="wrap">
            {one.san ?? one.keyName ?? one.keyFingerprint ?? <Badge>signer not known</Badge>}
            {one.issuer !== undefined && <span class="faint"> by {one.issuer}</span>}
          </li>
        ))}
      </ul>
      {verdict !== null && signers.length === 0 && <p class="faint">{counted(0, 'verified signer')}</p>}
    </div>
  )
}
