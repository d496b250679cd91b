/** Executed files, whether the list can be complete, and the used capabilities. */
import { addressOf, type Params } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { isUnshipped, originText } from '../../../parts/file-words.ts'
import { FilterBar, type FilterField } from '../../../parts/filter-bar.tsx'
import { flagsOf, useListFilter } from '../../../parts/list-filter.ts'
import { counted } from '../../../parts/plural.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, Digest } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import type { TabProps } from '../index.tsx'
import { wholeName } from '../name.ts'
import type { Profile } from '../words.ts'
import { Capabilities } from './capabilities.tsx'
import { CoverageTable } from './coverage.tsx'
import { type FileRow, fileRows, pathText, type Runtime, watchedContainers } from './rows.ts'

const PATH = '/workloads/{namespace}/{kind}/{name}/runtime'
/** About 100 kB of JSON. */
const SHOWN_FILES = 500

type RuntimeQuery = NonNullable<Params<typeof PATH>['query']>

const fieldsOf = (profile: Profile): readonly FilterField[] => [
  {
    name: 'container',
    meaning: 'a container',
    values: profile.dimensions.images.containers.map(({ name }) => name),
  },
  { name: 'kind', meaning: 'programs, or libraries', values: ['exec', 'lib'] },
  {
    name: 'origin',
    meaning: 'where the file came from',
    values: ['unshipped', 'image', 'otherFs', 'writableLayer', 'memfd', 'deleted', 'unknown'],
  },
  { name: 'window_hours', meaning: 'hours that coverage is about', values: ['1', '24', '168'] },
]

export default function RuntimeTab({ workload, profile }: TabProps) {
  const { namespace, kind, name } = workload
  const fields = fieldsOf(profile)
  const filter = useListFilter(fields)
  const params = { path: { namespace, kind, name }, query: { ...filter, limit: SHOWN_FILES } as RuntimeQuery }
  const reading = useRead(PATH, params)
  // The window is that of the coverage, and filters no file.
  const isFiltered = Object.keys(filter).some((name) => name !== 'window_hours')
  return (
    <>
      <FilterBar fields={fields} fieldOf={() => 'container'} />
      <Shown reading={reading}>
        {(runtime) => {
          const rows = fileRows(runtime)
          const watched = watchedContainers(runtime, profile).filter(
            ({ container }) => filter.container === undefined || container === filter.container,
          )
          const isWhole = watched.length > 0 && watched.every(({ coverage }) => coverage?.covered === true)
          return (
            <>
              <section class="section">
                <h2>What is watched</h2>
                <CoverageTable watched={watched} />
              </section>
              <section class="section">
                <h2>Files that ran</h2>
                <UnshippedNote rows={rows} isWhole={isWhole && !runtime.truncated} />
                {runtime.truncated && (
                  <p class="note">Only {rows.length} files are listed; more ran. Narrow the list with the filter.</p>
                )}
                <Table
                  name="Files that ran"
                  rows={rows}
                  keyOf={({ container, digest, kind, path }) => `${container} ${digest} ${kind} ${path}`}
                  columns={COLUMNS}
                  commands={{ ctb: ['runtime', wholeName(workload), ...flagsOf(filter)], url: addressOf(PATH, params) }}
                  empty={<NoFiles runtime={runtime} isWhole={isWhole} isFiltered={isFiltered} />}
                />
              </section>
            </>
          )
        }}
      </Shown>
      <Capabilities profile={profile} />
    </>
  )
}

/** A good result is stated only if it is known. */
function UnshippedNote({ rows, isWhole }: { rows: readonly FileRow[]; isWhole: boolean }) {
  const found = rows.filter(({ origin }) => isUnshipped(origin)).length
  if (found > 0)
    return (
      <p class="note bad">
        {counted(found, 'file')} that no image shipped: written after the container started, deleted while it ran, or
        only in memory.
      </p>
    )
  return (
    <p class="faint">
      {isWhole
        ? `None of the files below is one that no image shipped, and all containers were watched for the whole window.
          Code that an interpreter reads is not seen.`
        : 'None of the files below is one that no image shipped. That says nothing about what was not watched.'}
    </p>
  )
}

function NoFiles({ runtime, isWhole, isFiltered }: { runtime: Runtime; isWhole: boolean; isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No file matches" />
  if (runtime.coverage.length === 0)
    return (
      <Empty title="Not watched">
        No agent watches what the containers of this workload run. They may run anything.
      </Empty>
    )
  return (
    <Empty title="No file was seen">
      {isWhole ? 'All containers were watched for the whole window.' : 'It was not watched for the whole window.'}
    </Empty>
  )
}

const COLUMNS: readonly Column<FileRow>[] = [
  {
    title: 'File',
    cell: (row) => (
      <code title={row.pathComplete ? row.path : `The beginning of the path is not known: ${row.path}`}>
        {pathText(row)}
      </code>
    ),
    text: pathText,
    width: '28rem',
  },
  {
    title: 'As',
    cell: ({ kind }) => (kind === 'exec' ? 'program' : 'library'),
    text: ({ kind }) => kind,
    width: '6rem',
  },
  {
    title: 'Came from',
    cell: ({ origin }) => <Badge tone={isUnshipped(origin) ? 'bad' : 'plain'}>{originText(origin)}</Badge>,
    text: ({ origin }) => origin,
    width: '11rem',
  },
  { title: 'Container', cell: ({ container }) => container, text: ({ container }) => container, width: '9rem' },
  {
    title: 'Image',
    cell: ({ digest }) => (digest === '' ? <span class="faint">not known</span> : <Digest digest={digest} />),
    text: ({ digest }) => digest,
    width: '12rem',
  },
  {
    title: 'First seen',
    cell: ({ firstSeen, source }) => (
      <>
        <Ago at={firstSeen} />
        {source === 'backfill' && <span class="faint"> (found running)</span>}
      </>
    ),
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
