/** One image: where it runs, its findings, its SBOM, its signatures, and its files that ran. */
import type { ComponentType } from 'preact'
import { type Answer, ApiError } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { CopyButton } from '../../parts/copy-as.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { imageName } from '../../parts/supply-chain.tsx'
import { Badge } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { href, usePlace } from '../../place.ts'
import type { PageProps } from '../index.ts'
import { CompareWith } from './compare-with.tsx'
import { Diff } from './diff.tsx'
import { ImageFiles } from './files.tsx'
import { ImageFindings } from './findings.tsx'
import { ImageSbom } from './sbom.tsx'
import { ImageSignatures } from './signatures.tsx'
import { ImageWorkloads } from './workloads.tsx'
import '../lists.css'

export type ImageRecord = Answer<'/images/{digest}'>

export interface TabProps {
  readonly digest: string
  /** Null for an image that is not in the inventory. */
  readonly image: ImageRecord | null
}

interface Tab {
  readonly name: string
  readonly title: string
  readonly Part: ComponentType<TabProps>
}

const TABS: readonly Tab[] = [
  { name: 'workloads', title: 'Where it runs', Part: ImageWorkloads },
  { name: 'vulnerabilities', title: 'Vulnerabilities', Part: ImageFindings },
  { name: 'sbom', title: 'SBOM', Part: ImageSbom },
  { name: 'signatures', title: 'Signatures', Part: ImageSignatures },
  { name: 'files', title: 'Files that ran', Part: ImageFiles },
]
const DIGEST = /^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/

export default function ImagePage({ rest: [digest = '', action, other] }: PageProps) {
  if (!DIGEST.test(digest) || (action === 'diff' && !DIGEST.test(other ?? '')))
    return (
      <>
        <h1>Image</h1>
        <Empty title="This is no digest">
          An image has the address image/sha256:… with 64 hexadecimal digits. <a href={href(['images'])}>All images</a>
        </Empty>
      </>
    )
  if (action === 'diff') return <Diff from={digest} to={other!} />
  return <OneImage digest={digest} />
}

function OneImage({ digest }: { digest: string }) {
  const reading = useRead('/images/{digest}', { path: { digest } })
  const { data, error, refetch } = reading
  const isAbsent = error instanceof ApiError && error.status === 404
  if (data === undefined && !isAbsent)
    return (
      <>
        <h1>Image</h1>
        {error === null ? <Loading /> : <Failure error={error} retry={refetch} />}
      </>
    )
  const image = isAbsent ? null : data!
  return (
    <>
      <Head digest={digest} image={image} />
      {!isAbsent && <Stale reading={reading} />}
      <Tabs digest={digest} image={image} />
    </>
  )
}

function Head({ digest, image }: TabProps) {
  return (
    <>
      <h1>{image === null ? 'Image' : imageName(image)}</h1>
      <div class="row">
        <code class="wrap">{digest}</code>
        <CopyButton label="Copy the digest" text={digest} />
      </div>
      {image === null ? (
        <p class="verdict">
          <Badge>Not in the inventory</Badge> No container was seen to run this digest. Reports, SBOMs and results of
          checks may still be stored under it.
        </p>
      ) : (
        <div class="row">
          <Running image={image} />
          <span class="faint">
            first seen <Time at={image.firstSeen} />, last <Ago at={image.lastSeen} />
          </span>
          {image.tags.length > 1 && <span class="faint">also tagged {image.tags.slice(1).join(', ')}</span>}
          {image.repository !== null && (
            <a href={href(['images'], { repository: image.repository })}>All of this repository</a>
          )}
          <CompareWith image={image} />
        </div>
      )}
    </>
  )
}

function Running({ image: { workloads, truncated } }: { image: ImageRecord }) {
  const running = workloads.filter((one) => one.running).length
  if (running === 0) return <Badge>not seen running</Badge>
  return (
    <Badge tone="info">
      {truncated && running === workloads.length && 'more than '}
      {running} running {running === 1 ? 'container' : 'containers'}
    </Badge>
  )
}

function Tabs(props: TabProps) {
  const { query } = usePlace()
  const asked = query.get('tab')
  const tab = TABS.find(({ name }) => name === asked) ?? TABS[0]!
  return (
    <>
      <nav class="tabs" aria-label="Parts of the image">
        {TABS.map(({ name, title }) => (
          <a
            key={name}
            href={href(['image', props.digest], { tab: name === TABS[0]!.name ? null : name })}
            aria-current={name === tab.name ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <div class="section">
        <h2 id="tab-title" class="unseen">
          {tab.title}
        </h2>
        <tab.Part key={tab.name} {...props} />
      </div>
    </>
  )
}
