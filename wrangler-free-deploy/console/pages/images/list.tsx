/** The images that containers run or ran, by digest. */
import { type Answer, addressOf, type Params } from '../../api/client.ts'
import { itemsOf, usePages, useRead } from '../../api/query.ts'
import { FilterBar } from '../../parts/filter-bar.tsx'
import { flagsOf, NAMESPACE, REPOSITORY, useListFilter } from '../../parts/list-filter.ts'
import { counted, numberText } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { ImageLink, imageName } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Count, Digest } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { href } from '../../place.ts'
import '../lists.css'

type Image = Answer<'/images'>['items'][number]
type Query = NonNullable<Params<'/images'>['query']>

const FIELDS = [REPOSITORY, NAMESPACE]
const PAGE_ROWS = 200

export default function Images() {
  const filter = useListFilter(FIELDS)
  const asked = { query: { ...filter, limit: PAGE_ROWS } as Query }
  const reading = usePages('/images', asked)
  const rows = itemsOf(reading)
  return (
    <>
      <h1>Images</h1>
      <Gaps namespace={filter.namespace} />
      <FilterBar fields={FIELDS} fieldOf={(word) => (/[/.:]/.test(word) ? 'repository' : 'namespace')} />
      <Shown reading={reading}>
        {() => (
          <Table
            name="Images"
            rows={rows}
            keyOf={({ digest }) => digest}
            columns={COLUMNS}
            paged={reading}
            commands={{ ctb: ['images', ...flagsOf(filter)], url: addressOf('/images', asked) }}
            empty={<NoRows isFiltered={Object.keys(filter).length > 0} />}
          />
        )}
      </Shown>
    </>
  )
}

/** Numbers of running images with gaps, such as no report. */
function Gaps({ namespace }: { namespace: string | undefined }) {
  const query = { part: 'images', limit: 1, ...(namespace !== undefined && { namespace }) } as const
  const { data } = useRead('/coverage', { query })
  const totals = data?.images?.totals
  if (!totals || totals.total === 0) return null
  const { total, known, missing } = totals
  const gaps = [
    { count: missing.no_report, text: 'without a report of vulnerabilities' },
    { count: missing.no_sbom, text: 'without an SBOM' },
    { count: missing.no_signature_result, text: 'not checked for signatures' },
  ].filter(({ count }) => count > 0)
  return (
    <p class="lead">
      {counted(total, 'image')} {total === 1 ? 'runs' : 'run'}
      {namespace !== undefined && ` in ${namespace}`}
      {gaps.length === 0 ? '.' : `, ${gaps.map(({ count, text }) => `${numberText(count)} ${text}`).join(', ')}. `}
      {known < total && <a href={href(['health'], { part: 'images', namespace })}>What is not known of them</a>}
    </p>
  )
}

function NoRows({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No match">No image of the inventory matches the filter.</Empty>
  return (
    <Empty title="No image is known">
      Agents post the containers of their pods with the digests of their images, and none has posted one yet.
    </Empty>
  )
}

const KINDS: Readonly<Record<Image['digestKind'], string>> = {
  repo: 'from the registry',
  pinned: 'pinned in the pod',
  config: 'of the configuration, not of a manifest',
}

const COLUMNS: readonly Column<Image>[] = [
  { title: 'Image', cell: (image) => <ImageLink image={image} />, text: imageName, width: '30rem' },
  {
    title: 'Digest',
    cell: ({ digest, digestKind }) => (
      <>
        <Digest digest={digest} />{' '}
        {digestKind === 'config' && (
          <Badge title={`The digest is ${KINDS[digestKind]}: scanners do not know images by it.`}>config</Badge>
        )}
      </>
    ),
    text: ({ digest }) => digest,
    width: '15rem',
  },
  {
    title: 'Running containers',
    cell: ({ digest, runningContainers }) => <Count value={runningContainers} to={href(['image', digest])} />,
    text: ({ runningContainers }) => runningContainers,
    isNumber: true,
    width: '9.5rem',
  },
  {
    title: 'First seen',
    cell: ({ firstSeen }) => <Time at={firstSeen} />,
    text: ({ firstSeen }) => firstSeen,
    width: '10rem',
  },
  {
    title: 'Last seen',
    cell: ({ lastSeen }) => <Ago at={lastSeen} />,
    text: ({ lastSeen }) => lastSeen,
    width: '8rem',
  },
]
