/** Images and workloads that contain a package. */
import { type Answer, addressOf, type Params } from '../../api/client.ts'
import { itemsOf, usePages } from '../../api/query.ts'
import { FilterBar, type FilterField } from '../../parts/filter-bar.tsx'
import { flagsOf, IN_USE, useListFilter } from '../../parts/list-filter.ts'
import { counted } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { ImageLink, InUse, imageName, JoinBadge } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Workload } from '../../parts/text.tsx'
import { href } from '../../place.ts'
import '../lists.css'

type Page = Answer<'/components'>
type Component = Page['items'][number]
type Query = NonNullable<Params<'/components'>['query']>

const NAME: FilterField = { name: 'name', meaning: 'the name of a package, or its artifact' }
const PURL: FilterField = { name: 'purl', meaning: 'a package URL, with or without a version' }
const VERSION: FilterField = { name: 'version', meaning: 'the exact version' }
const RUNNING: FilterField = {
  name: 'running',
  meaning: 'only in images that a container runs, or only in others',
  values: ['true', 'false'],
}
const FIELDS = [NAME, PURL, VERSION, RUNNING, IN_USE]
const PAGE_ROWS = 100

export default function Packages() {
  const filter = useListFilter(FIELDS)
  const isAsked = filter.name !== undefined || filter.purl !== undefined
  return (
    <>
      <h1>{filter.name ?? filter.purl ?? 'Packages'}</h1>
      <FilterBar fields={FIELDS} fieldOf={(word) => (word.startsWith('pkg:') ? 'purl' : 'name')} />
      {isAsked ? (
        <Found filter={filter} />
      ) : (
        <Empty title="Which package?">
          Type its name, such as log4j-core, or its package URL, such as pkg:npm/lodash. The answer is where it runs, in
          which version, and whether it is in use.
        </Empty>
      )}
    </>
  )
}

function Found({ filter }: { filter: Readonly<Record<string, string>> }) {
  const asked = { query: { ...filter, limit: PAGE_ROWS } as Query }
  const reading = usePages('/components', asked)
  const rows = itemsOf(reading)
  return (
    <Shown reading={reading}>
      {({ pages }) => (
        <>
          {reading.firstIndex === 0 && (
            <Answered rows={rows} hasMore={reading.hasNextPage} first={pages[0]!} filter={filter} />
          )}
          <Table
            name="Where the package is"
            rows={rows}
            keyOf={({ name, version, purl, type, imageDigest }) => [name, version, purl, type, imageDigest].join(' ')}
            columns={COLUMNS}
            paged={reading}
            commands={{ ctb: ['components', ...flagsOf(filter)], url: addressOf('/components', asked) }}
            empty={
              <Empty title="No match">
                No report and no SBOM of an image in the inventory names it
                {Object.keys(filter).length > 1 && ', with these filters'}. A package is found by its whole name.
              </Empty>
            }
          />
        </>
      )}
    </Shown>
  )
}

interface AnsweredProps {
  readonly rows: readonly Component[]
  readonly hasMore: boolean
  readonly first: Page
  readonly filter: Readonly<Record<string, string>>
}

function Answered({ rows, hasMore, first: { notCovered, notRead }, filter }: AnsweredProps) {
  const imagesOf = (some: readonly Component[]) => new Set(some.map(({ imageDigest }) => imageDigest)).size
  const running = imagesOf(rows.filter((one) => one.running))
  const versions = new Set(rows.map(({ version }) => version)).size
  const isUnknown = notCovered > 0 || notRead > 0
  // Of the images that these leave out others may run.
  const isPart = filter.running !== undefined || filter.in_use !== undefined
  const atLeast = hasMore ? 'at least ' : ''
  return (
    <p class="verdict" role="status">
      {running > 0 ? (
        <Badge tone="info">Running</Badge>
      ) : (
        !isPart && <Badge tone={isUnknown ? 'warn' : 'good'}>{isUnknown ? 'Not known' : 'Not seen running'}</Badge>
      )}{' '}
      {isPart && 'Only what the filter matches counts here. '}
      {rows.length === 0
        ? `Nothing that is stored ${isPart ? 'matches' : 'names it'}. `
        : `In ${atLeast}${counted(imagesOf(rows), 'image')}, of which ${atLeast}${running} ${
            running === 1 ? 'runs' : 'run'
          }, in ${atLeast}${counted(versions, 'version')}. `}
      {notCovered > 0 && (
        <>
          What {counted(notCovered, 'running image')} {notCovered === 1 ? 'contains' : 'contain'} is not known: no
          report and no SBOM. <a href={href(['health'], { part: 'images' })}>Which ones</a>{' '}
        </>
      )}
      {notRead > 0 && `${counted(notRead, 'report or SBOM', 'reports or SBOMs')} are not indexed yet. `}
      {filter.name !== undefined && (
        <a href={href(['vulnerabilities'], { package: filter.name })}>
          Vulnerabilities of <bdi>{filter.name}</bdi>
        </a>
      )}
    </p>
  )
}

/** The first workload on one line, because virtual tables need rows of equal height. */
function Workloads({ component: { workloads, workloadCount } }: { component: Component }) {
  const [first] = workloads
  if (first === undefined) return <span class="faint">none known</span>
  return (
    <>
      <Workload {...first} /> {!first.running && <span class="faint">ran</span>}
      {workloadCount > 1 && <span class="faint">and {workloadCount - 1} more</span>}
    </>
  )
}

const COLUMNS: readonly Column<Component>[] = [
  {
    title: 'Package',
    cell: ({ name, purl, evidence }) => (
      <span title={purl ?? undefined}>
        {name}{' '}
        {evidence === 'findings' && (
          <Badge title="No SBOM of the image lists it: only a report of vulnerabilities does.">by a report</Badge>
        )}
      </span>
    ),
    text: ({ name }) => name,
    width: '14rem',
  },
  { title: 'Version', cell: ({ version }) => version ?? '–', text: ({ version }) => version, width: '10rem' },
  {
    title: 'Image',
    cell: ({ imageDigest, repository, tags }) => <ImageLink image={{ digest: imageDigest, repository, tags }} />,
    text: ({ imageDigest, repository, tags }) =>
      `${imageName({ digest: imageDigest, repository, tags })} ${imageDigest}`,
    width: '22rem',
  },
  {
    title: 'State',
    cell: ({ running }) => (running ? <Badge tone="info">runs</Badge> : <span class="faint">not seen running</span>),
    text: ({ running }) => (running ? 'runs' : 'not seen running'),
    width: '8rem',
  },
  {
    title: 'In use',
    cell: ({ inUseState, inUseDetail }) => <InUse state={inUseState} reason={inUseDetail.reason} />,
    text: ({ inUseState }) => inUseState,
    width: '9rem',
  },
  {
    title: 'Workloads',
    cell: (component) => <Workloads component={component} />,
    text: ({ workloads }) => workloads.map(({ namespace, kind, name }) => `${namespace}/${kind}/${name}`).join(' '),
    width: '20rem',
  },
  {
    title: 'Found by',
    cell: ({ sources, join }) => (
      <>
        {sources.join(', ')} <JoinBadge join={join} />
      </>
    ),
    text: ({ sources, join }) => `${sources.join(' ')} ${join}`,
    width: '14rem',
  },
  { title: 'Type', cell: ({ type }) => type ?? '–', text: ({ type }) => type, width: '8rem' },
]
