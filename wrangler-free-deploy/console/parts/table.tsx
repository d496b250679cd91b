/**
 * The one table of the console: few rows are rendered as they are, many only where they are in sight. It has CSV of its
 * rows, and the commands that give the same.
 */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { PagedReading } from '../api/query.ts'
import { type Commands, CopyAs } from './copy-as.tsx'
import { csvText, download } from './csv.ts'

/** From so many rows on, only those in sight are in the document. */
const VIRTUAL_FROM_ROWS = 150
const ROW_PX = 34
const ROWS_AROUND = 12
/** Distance to the end at which the next page is read. */
const READ_ON_ROWS = 30

export interface Column<T> {
  /** Also the head of the CSV column. */
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  /** The value as text, for CSV; none leaves the column out. */
  readonly text?: (row: T) => string | number | null | undefined
  readonly isNumber?: boolean
  /** Width for tables that only render the rows in sight, whose columns cannot fit themselves to all rows. */
  readonly width?: string
}

export interface TableProps<T> {
  /** Names the table for screen readers, and its CSV file. */
  readonly name: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly commands?: Commands
  /** A list that is read page by page: it reads on as the end comes near. */
  readonly paged?: PagedReading<unknown>
  /** Shown instead of a table without rows. */
  readonly empty: ComponentChildren
  /** Further controls, beside the CSV button. */
  readonly tools?: ComponentChildren
  readonly onRow?: (row: T) => void
  readonly isSelected?: (row: T) => boolean
}

const count = new Intl.NumberFormat()

export function Table<T>(props: TableProps<T>) {
  const { name, columns, rows, commands, paged, empty, tools } = props
  if (rows.length === 0 && !paged?.hasNextPage)
    return (
      <div>
        {tools && <div class="table-tools">{tools}</div>}
        {empty}
      </div>
    )
  const csv = () => {
    const told = columns.filter(({ text }) => text !== undefined)
    const lines = rows.map((row) => told.map(({ text }) => String(text!(row) ?? '')))
    download(
      `${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.csv`,
      'text/csv',
      csvText([told.map(({ title }) => title), ...lines]),
    )
  }
  const more = paged?.hasNextPage === true
  return (
    <section class="table-frame" aria-label={name}>
      <div class="table-tools">
        <span class="faint" role="status">
          {count.format(rows.length)} {rows.length === 1 ? 'row' : 'rows'}
          {more && ', more are there'}
        </span>
        <span class="grow" />
        {tools}
        <button type="button" class="quiet" onClick={csv} title={more ? 'The rows that were read so far' : undefined}>
          CSV
        </button>
        {commands && <CopyAs {...commands} />}
      </div>
      {rows.length < VIRTUAL_FROM_ROWS ? <Plain {...props} /> : <InSight {...props} />}
      {more && (
        <p class="table-end">
          <button type="button" disabled={paged.isFetchingNextPage} onClick={() => paged.fetchNextPage()}>
            {paged.isFetchingNextPage ? 'Reading…' : 'Read more'}
          </button>
        </p>
      )}
    </section>
  )
}

function Head<T>({ columns }: { columns: readonly Column<T>[] }) {
  return (
    <thead>
      <tr>
        {columns.map(({ title, isNumber }) => (
          <th key={title} scope="col" class={isNumber ? 'right' : undefined}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  )
}

function Row<T>({ row, columns, onRow, isSelected, index }: TableProps<T> & { row: T; index?: number }) {
  return (
    <tr
      class={`${onRow ? 'can-open' : ''} ${isSelected?.(row) ? 'selected' : ''}`}
      aria-rowindex={index === undefined ? undefined : index + 2}
      onClick={onRow && ((event) => isPlainClick(event) && onRow(row))}
    >
      {columns.map(({ title, cell, isNumber }) => (
        <td key={title} class={isNumber ? 'right' : undefined}>
          {cell(row)}
        </td>
      ))}
    </tr>
  )
}

/** A click on a link or a button in the row is theirs; so is the end of selecting text. */
function isPlainClick(event: MouseEvent): boolean {
  const isOnControl = event.target instanceof Element && event.target.closest('a, button') !== null
  return !isOnControl && window.getSelection()?.isCollapsed !== false
}

function Plain<T>(props: TableProps<T>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard
    <section class="table-scroll" tabIndex={0} aria-label={`${props.name}, scrolls sideways`}>
      <table>
        <caption class="unseen">{props.name}</caption>
        <Head columns={props.columns} />
        <tbody>
          {props.rows.map((row) => (
            <Row key={props.keyOf(row)} {...props} row={row} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function InSight<T>(props: TableProps<T>) {
  const { name, columns, rows, keyOf, paged } = props
  const scroller = useRef<HTMLElement>(null)
  const [, render] = useState(0)
  const options: VirtualizerOptions<HTMLElement, HTMLElement> = {
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: ROWS_AROUND,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => render((times) => times + 1),
  }
  const virtualizer = useMemo(() => new Virtualizer<HTMLElement, HTMLElement>(options), [])
  virtualizer.setOptions(options)
  useEffect(() => virtualizer._didMount(), [virtualizer])
  useLayoutEffect(() => virtualizer._willUpdate())
  const items = virtualizer.getVirtualItems()
  const first = items[0]
  const last = items.at(-1)
  const isNearEnd = last !== undefined && last.index >= rows.length - READ_ON_ROWS
  useEffect(() => {
    if (isNearEnd && paged?.hasNextPage && !paged.isFetchingNextPage) paged.fetchNextPage()
  }, [isNearEnd, rows.length])
  const after = last === undefined ? 0 : virtualizer.getTotalSize() - last.end
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard
    <section class="table-scroll in-sight" ref={scroller} tabIndex={0} aria-label={`${name}, scrolls`}>
      <table aria-rowcount={rows.length + 1}>
        <caption class="unseen">{name}</caption>
        <colgroup>
          {columns.map(({ title, width }) => (
            <col key={title} style={width === undefined ? undefined : { width }} />
          ))}
        </colgroup>
        <Head columns={columns} />
        <tbody>
          {first !== undefined && first.start > 0 && <Space px={first.start} columns={columns.length} />}
          {items.map(({ index }) => {
            const row = rows[index]
            return row === undefined ? null : <Row key={keyOf(row)} {...props} row={row} index={index} />
          })}
          {after > 0 && <Space px={after} columns={columns.length} />}
        </tbody>
      </table>
    </section>
  )
}

/** Takes the room of rows that are out of sight. */
function Space({ px, columns }: { px: number; columns: number }) {
  return (
    <tr class="space">
      <td colSpan={columns} style={{ height: `${px}px` }} />
    </tr>
  )
}
