/** One part of a comparison as a table, or the reason why there is none. */

import { counted } from '../../../parts/plural.ts'
import { sentence } from '../../../parts/reason-words.ts'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, type Tone } from '../../../parts/text.tsx'
import { Time, toMs } from '../../../parts/time.tsx'
import { href } from '../../../place.ts'
import type { ChangeRow, Part } from './rows.ts'

/** Parts with more rows are folded. */
const FOLDED_FROM_ROWS = 30

export function PartSection({ part: { title, rows, state, gaps, notes } }: { part: Part }) {
  return (
    <div class="change-part">
      <h3>
        {title}{' '}
        {rows === null ? (
          <Badge>{state}</Badge>
        ) : (
          <Badge tone={rows.length > 0 ? 'info' : 'plain'}>
            {rows.length > 0 ? counted(rows.length, 'change') : gaps.length > 0 ? 'none in what is known' : 'no change'}
          </Badge>
        )}
      </h3>
      {gaps.map((gap) => (
        <p key={gap} class="faint">
          {`${rows === null ? sentence(gap) : `Not known in part: ${gap}`}.`}
        </p>
      ))}
      {notes.map((note) => (
        <p key={note} class="faint">
          {note}
        </p>
      ))}
      {rows !== null && rows.length > 0 && <ChangeTable title={title} rows={rows} />}
    </div>
  )
}

export function ChangeTable({ title, rows }: { title: string; rows: readonly ChangeRow[] }) {
  const table = (
    <Table
      name={`${title} that changed`}
      rows={rows}
      keyOf={({ change, what, before, after }) => [change, what, before, after].join(' ')}
      columns={COLUMNS}
      empty={null}
    />
  )
  if (rows.length < FOLDED_FROM_ROWS) return table
  return (
    <details>
      <summary>Show {rows.length} changes</summary>
      {table}
    </details>
  )
}

const TONES: Readonly<Record<string, Tone>> = { weakened: 'bad', came: 'warn', went: 'good' }

const isTime = (text: string): boolean => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(toMs(text))

function Value({ text }: { text: string | null }) {
  if (text === null) return <span class="faint">–</span>
  return isTime(text) ? <Time at={text} /> : <span class="wrap">{text}</span>
}

const COLUMNS: readonly Column<ChangeRow>[] = [
  {
    title: 'Change',
    cell: ({ change }) => <Badge tone={TONES[change] ?? 'plain'}>{change}</Badge>,
    text: ({ change }) => change,
    width: '9rem',
  },
  {
    title: 'What',
    cell: ({ what, vulnerability, digest }) =>
      vulnerability !== undefined ? (
        <a href={href(['vulnerability', vulnerability])}>{what}</a>
      ) : digest !== undefined ? (
        <a class={/^sha\d+:/.test(what) ? 'nowrap' : undefined} href={href(['image', digest])}>
          {what}
        </a>
      ) : (
        <span class="wrap">{what}</span>
      ),
    text: ({ what }) => what,
    width: '26rem',
  },
  { title: 'Before', cell: ({ before }) => <Value text={before} />, text: ({ before }) => before, width: '14rem' },
  { title: 'After', cell: ({ after }) => <Value text={after} />, text: ({ after }) => after, width: '14rem' },
]
