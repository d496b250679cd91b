/** The components of an image, from one SBOM. */
import { useId } from 'preact/hooks'
import { type Answer, addressOf, type Params } from '../../api/client.ts'
import { itemsOf, usePages } from '../../api/query.ts'
import { DownloadButton } from '../../parts/download.tsx'
import { counted, numberText } from '../../parts/plural.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { InUse } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { go, href, hrefWith, usePlace } from '../../place.ts'
import type { TabProps } from './image.tsx'
import { Reports } from './reports.tsx'

type Component = Answer<'/images/{digest}/sbom'>['items'][number]
type Query = NonNullable<Params<'/images/{digest}/sbom'>['query']>

const PAGE_ROWS = 200

export function ImageSbom({ digest }: TabProps) {
  const { query } = usePlace()
  const id = useId()
  const chosen = query.get('report_digest')
  const search = query.get('q') ?? ''
  const choice = { ...(chosen !== null && { report_digest: chosen }) }
  const asked = { path: { digest }, query: { ...choice, limit: PAGE_ROWS } as Query }
  const reading = usePages('/images/{digest}/sbom', asked)
  const read = itemsOf(reading)
  const rows = read.filter((one) => isMatch(one, search))
  return (
    <Shown reading={reading}>
      {({ pages: [first] }) => (
        <>
          {first!.report !== null && (
            <div class="row">
              <label for={id}>Search in it</label>
              <input
                id={id}
                type="search"
                value={search}
                placeholder="Name, version or package URL"
                onInput={({ currentTarget }) => go(hrefWith({ q: currentTarget.value }), { replace: true })}
              />
              {search !== '' && reading.hasNextPage && (
                <span class="faint small" role="status">
                  Searched in the {numberText(read.length)} of {counted(first!.report.itemCount, 'component')} that were
                  read so far.
                </span>
              )}
              <span class="grow" />
              {first!.reports.length > 1 && <Choice page={first!} />}
              <DownloadButton
                label="CycloneDX"
                url={addressOf('/images/{digest}/sbom/cyclonedx', { path: { digest }, query: choice as never })}
                file={`${digest.replace(':', '_')}.cdx.json`}
              />
            </div>
          )}
          <Table
            name="Components"
            rows={rows}
            keyOf={(one) => String(one.id)}
            columns={COLUMNS}
            paged={reading}
            commands={{
              ctb: ['sbom', digest, ...(chosen === null ? [] : ['--report-digest', chosen])],
              url: addressOf('/images/{digest}/sbom', asked),
            }}
            empty={<NoRows hasReport={first!.report !== null} search={search} />}
          />
          <Reports title="SBOMs" reports={first!.reports} retired={first!.retiredGuesses} />
        </>
      )}
    </Shown>
  )
}

function isMatch({ name, version, purl }: Component, search: string): boolean {
  const text = search.trim().toLowerCase()
  return text === '' || [name, version, purl].some((one) => one?.toLowerCase().includes(text))
}

function Choice({ page: { reports, report } }: { page: Answer<'/images/{digest}/sbom'> }) {
  return (
    <label>
      SBOM of{' '}
      <select
        value={report?.reportDigest ?? ''}
        onChange={({ currentTarget }) => go(hrefWith({ report_digest: currentTarget.value }))}
      >
        {reports.map(({ source, reportDigest, digestKind }) => (
          <option key={`${source} ${reportDigest}`} value={reportDigest}>
            {`${source}, ${digestKind} ${reportDigest.slice(7, 15)}`}
          </option>
        ))}
      </select>
    </label>
  )
}

function NoRows({ hasReport, search }: { hasReport: boolean; search: string }) {
  if (!hasReport)
    return (
      <Empty title="No SBOM is stored">
        No scanner has posted one: what the image contains is not known from SBOMs.
      </Empty>
    )
  if (search !== '') return <Empty title="No match">No component has this in its name, version or package URL.</Empty>
  return <Empty title="The SBOM lists no component" />
}

/** An npm scope is encoded as `%40scope`, but some scanners leave the `@` after a slash unencoded. */
const withoutVersion = (purl: string) => purl.replace(/(?<!\/)@.*$|[?#].*$/, '')

const COLUMNS: readonly Column<Component>[] = [
  {
    title: 'Component',
    cell: ({ name, purl }) => (
      <a href={href(['packages'], purl === null ? { name } : { purl: withoutVersion(purl) })} title={purl ?? undefined}>
        {name}
      </a>
    ),
    text: ({ name }) => name,
    width: '18rem',
  },
  { title: 'Version', cell: ({ version }) => version ?? '–', text: ({ version }) => version, width: '11rem' },
  { title: 'Type', cell: ({ type }) => type ?? '–', text: ({ type }) => type, width: '8rem' },
  {
    title: 'In use',
    cell: ({ inUseState, inUseDetail }) => <InUse state={inUseState} reason={inUseDetail.reason} />,
    text: ({ inUseState }) => inUseState,
    width: '9rem',
  },
  {
    title: 'Licences',
    cell: ({ licenses }) => (licenses.length === 0 ? <span class="faint">not stated</span> : licenses.join(', ')),
    text: ({ licenses }) => licenses.join('; '),
    width: '13rem',
  },
  {
    title: 'Files',
    cell: ({ filePaths }) => (
      <span title={filePaths.join('\n')}>{filePaths[0] === undefined ? '–' : filesText(filePaths)}</span>
    ),
    text: ({ filePaths }) => filePaths.join(' '),
    width: '18rem',
  },
  { title: 'Package URL', cell: ({ purl }) => purl ?? '–', text: ({ purl }) => purl, width: '26rem' },
]

const filesText = (paths: readonly string[]) =>
  paths.length === 1 ? paths[0] : `${paths[0]} and ${paths.length - 1} more`
