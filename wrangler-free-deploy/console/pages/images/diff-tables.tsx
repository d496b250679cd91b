/** The lists of a comparison of two images. */
import type { ComponentChildren } from 'preact'
import type { Answer } from '../../api/client.ts'
import { counted } from '../../parts/plural.ts'
import { VulnerabilityLink } from '../../parts/supply-chain.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, SeverityBadge, type Tone } from '../../parts/text.tsx'
import { Time } from '../../parts/time.tsx'
import { href } from '../../place.ts'

type ImageDiff = Answer<'/images/{digest}/diff/{other}'>
type FindingDiff = NonNullable<ImageDiff['findings']>
type ComponentDiff = NonNullable<ImageDiff['components']>
type FileDiff = NonNullable<ImageDiff['files']>

/** A row of one of the lists, with its kind of change. */
type Changed<T> = T & { readonly how: string; readonly tone: Tone }

interface List<T> {
  readonly items: readonly T[]
  readonly total: number
  readonly truncated: boolean
}

const marked = <T,>({ items }: List<T>, how: string, tone: Tone): Changed<T>[] =>
  items.map((one) => ({ ...one, how, tone }))

/** `3 came, 12 went, 2 changed`, and a note if a list is cut. */
function Summary({ parts }: { parts: readonly (readonly [string, List<unknown>])[] }) {
  const isCut = parts.some(([, { truncated }]) => truncated)
  return (
    <p class="lead">
      {parts.map(([word, { total }]) => `${total} ${word}`).join(', ')}
      {isCut && '. The first 500 of each are listed.'}
    </p>
  )
}

const HOW = <T,>(): Column<Changed<T>> => ({
  title: 'Change',
  cell: ({ how, tone }) => <Badge tone={tone}>{how}</Badge>,
  text: ({ how }) => how,
  width: '7rem',
})

type FindingRow = Changed<FindingDiff['came']['items'][number]>

export function Findings({ findings: { came, went, changed, sources } }: { findings: FindingDiff }) {
  const rows: readonly FindingRow[] = [
    ...marked(came, 'came', 'bad'),
    ...marked(went, 'went', 'good'),
    ...marked(changed, 'changed', 'info'),
  ]
  return (
    <>
      <Summary
        parts={[
          ['came', came],
          ['went', went],
          ['changed', changed],
        ]}
      />
      <Same isSame={rows.length === 0} sources={sources}>
        <Table
          name="Findings that differ"
          rows={rows}
          keyOf={({ how, id, package: name }) => `${how} ${id} ${name}`}
          columns={FINDING_COLUMNS}
          empty={null}
        />
      </Same>
    </>
  )
}

function Same({
  isSame,
  sources,
  children,
}: {
  isSame: boolean
  sources: readonly string[]
  children: ComponentChildren
}) {
  const by = `compared by ${sources.length === 0 ? 'no scanner' : sources.join(' and ')}`
  return (
    <>
      {isSame ? <p>Nothing differs, {by}.</p> : children}
      {!isSame && <p class="faint small">As {by}.</p>}
    </>
  )
}

const versionsOf = (side: FindingRow['from']) => side?.installedVersions.join(', ') ?? '–'

const FINDING_COLUMNS: readonly Column<FindingRow>[] = [
  HOW(),
  { title: 'Vulnerability', cell: ({ id }) => <VulnerabilityLink id={id} />, text: ({ id }) => id, width: '11rem' },
  {
    title: 'Package',
    cell: ({ package: name }) => <a href={href(['packages'], { name })}>{name}</a>,
    text: (one) => one.package,
    width: '14rem',
  },
  {
    title: 'Severity',
    cell: ({ from, to }) => <SeverityBadge severity={(to ?? from)?.severity} />,
    text: ({ from, to }) => (to ?? from)?.severity,
    width: '7rem',
  },
  {
    title: 'Older version',
    cell: ({ from }) => versionsOf(from),
    text: ({ from }) => versionsOf(from),
    width: '12rem',
  },
  { title: 'Newer version', cell: ({ to }) => versionsOf(to), text: ({ to }) => versionsOf(to), width: '12rem' },
  {
    title: 'Fixed in',
    cell: ({ from, to }) => (to ?? from)?.fixedVersions.join(', ') || <span class="faint">none known</span>,
    text: ({ from, to }) => (to ?? from)?.fixedVersions.join(' '),
    width: '12rem',
  },
]

interface ComponentRow {
  readonly name: string
  readonly purl: string | null
  readonly from: string | null
  readonly to: string | null
  readonly count: number
}

export function Components({ components: { added, removed, changed, sources } }: { components: ComponentDiff }) {
  const rows: readonly Changed<ComponentRow>[] = [
    ...marked(changed, 'changed', 'info'),
    ...marked(added, 'added', 'plain').map((one) => ({ ...one, from: null, to: one.version })),
    ...marked(removed, 'removed', 'plain').map((one) => ({ ...one, from: one.version, to: null })),
  ]
  return (
    <>
      <Summary
        parts={[
          ['changed', changed],
          ['added', added],
          ['removed', removed],
        ]}
      />
      <Same isSame={rows.length === 0} sources={sources}>
        <Table
          name="Components that differ"
          rows={rows}
          keyOf={({ how, name, purl, from, to }) => `${how} ${name} ${purl} ${from} ${to}`}
          columns={COMPONENT_COLUMNS}
          empty={null}
        />
      </Same>
    </>
  )
}

const COMPONENT_COLUMNS: readonly Column<Changed<ComponentRow>>[] = [
  HOW(),
  {
    title: 'Component',
    cell: ({ name, purl, count }) => (
      <>
        <a href={href(['packages'], purl === null ? { name } : { purl })}>{name}</a>
        {count > 1 && <span class="faint"> {counted(count, 'time')}</span>}
      </>
    ),
    text: ({ name }) => name,
    width: '22rem',
  },
  { title: 'Older version', cell: ({ from }) => from ?? '–', text: ({ from }) => from, width: '14rem' },
  { title: 'Newer version', cell: ({ to }) => to ?? '–', text: ({ to }) => to, width: '14rem' },
  { title: 'Package URL', cell: ({ purl }) => purl ?? '–', text: ({ purl }) => purl, width: '22rem' },
]

type FileRow = Changed<FileDiff['onlyFrom']['items'][number]>

export function Files({ files: { onlyFrom, onlyTo } }: { files: FileDiff }) {
  const rows: readonly FileRow[] = [...marked(onlyTo, 'only newer', 'info'), ...marked(onlyFrom, 'only older', 'plain')]
  return (
    <>
      <Summary
        parts={[
          ['ran only in the newer', onlyTo],
          ['ran only in the older', onlyFrom],
        ]}
      />
      {rows.length > 0 && (
        <Table
          name="Files that ran in one of them"
          rows={rows}
          keyOf={({ how, kind, path }) => `${how} ${kind} ${path}`}
          columns={FILE_COLUMNS}
          empty={null}
        />
      )}
    </>
  )
}

const FILE_COLUMNS: readonly Column<FileRow>[] = [
  HOW(),
  { title: 'File', cell: ({ path }) => <code>{path}</code>, text: ({ path }) => path, width: '28rem' },
  {
    title: 'How',
    cell: ({ kind }) => (kind === 'exec' ? 'executed' : 'loaded'),
    text: ({ kind }) => kind,
    width: '7rem',
  },
  {
    title: 'First seen',
    cell: ({ firstSeen }) => <Time at={firstSeen} />,
    text: ({ firstSeen }) => firstSeen,
    width: '10rem',
  },
  {
    title: 'Last seen',
    cell: ({ lastSeen }) => <Time at={lastSeen} />,
    text: ({ lastSeen }) => lastSeen,
    width: '10rem',
  },
]
