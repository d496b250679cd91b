/**
 * The table of all pages. Short tables are rendered whole, long ones are virtual: only visible rows are rendered. The
 * rows can be saved as CSV, and commands that return the same data can be copied. Of a paged list it shows the pages in
 * memory, and keeps the top row in place as pages are added and removed around it.
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

/** Tables with at least this many rows are virtual. */
const VIRTUAL_FROM_ROWS = 150
const ROW_PX = 34
const ROWS_AROUND = 12
/** The next page is read when the end is this many rows away. */
const READ_ON_ROWS = 30

export interface Column<T> {
  /** Also the header in the CSV. */
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  /** The value for CSV; undefined leaves the column out. */
  readonly text?: (row: T) => string | number | null | undefined
  readonly isNumber?: boolean
  /** Width in virtual tables, whose columns cannot adapt to rows that are not rendered. */
  readonly width?: string
  /** Hidden on narrow screens, where the detail of the row has the same. */
  readonly isMinor?: boolean
}

export interface TableProps<T> {
  /** The accessible name of the table, and the name of its CSV file. */
  readonly name: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly commands?: Commands
  /** A paged list: further pages are read as the end comes near. */
  readonly paged?: PagedReading<unknown>
  /** Shown instead of a table without rows. */
  readonly empty: ComponentChildren
  /** Further controls beside the CSV button. */
  readonly tools?: ComponentChildren
  /** Replaces the CSV button if the whole list can be exported. */
  readonly csv?: ComponentChildren
  /** Height of a row in a virtual table. */
  readonly rowPx?: number | undefined
  readonly onRow?: (row: T) => void
  readonly isSelected?: (row: T) => boolean
}

const count = new Intl.NumberFormat()

export function Table<T>(props: TableProps<T>) {
  const { name, rows, commands, paged, empty, tools, csv } = props
  if (rows.length === 0 && !paged?.hasNextPage && !paged?.hasPreviousPage)
    return (
      <div>
        {tools && <div class="table-tools">{tools}</div>}
        {empty}
      </div>
    )
  return (
    <section class="table-frame" aria-label={name}>
      <div class="table-tools">
        <RowCount {...props} />
        <span class="grow" />
        {tools}
        {csv ?? <RowsAsCsv {...props} />}
        {commands && <CopyAs {...commands} />}
      </div>
      {paged?.hasPreviousPage && (
        <p class="table-end">
          <button type="button" disabled={paged.isFetchingPreviousPage} onClick={() => paged.fetchPreviousPage()}>
            {paged.isFetchingPreviousPage ? 'Reading…' : 'Read the rows before'}
          </button>{' '}
          <button type="button" onClick={() => paged.toStart()}>
            To the first row
          </button>
        </p>
      )}
      {rows.length < VIRTUAL_FROM_ROWS ? <Plain {...props} /> : <InSight {...props} />}
      {paged?.hasNextPage && (
        <p class="table-end">
          <button type="button" disabled={paged.isFetchingNextPage} onClick={() => paged.fetchNextPage()}>
            {paged.isFetchingNextPage ? 'Reading…' : 'Read more'}
          </button>
        </p>
      )}
    </section>
  )
}

/** The number of rows, or the range of a longer list. */
function RowCount<T>({ rows, paged }: TableProps<T>) {
  const first = paged?.firstIndex ?? 0
  const numbers =
    first === 0 ? count.format(rows.length) : `${count.format(first + 1)} – ${count.format(first + rows.length)}`
  return (
    <span class="faint" role="status">
      {first === 0 ? '' : 'Rows '}
      {numbers}
      {first > 0 ? '' : rows.length === 1 ? ' row' : ' rows'}
      {paged?.hasNextPage && ', more are there'}
    </span>
  )
}

function RowsAsCsv<T>({ name, columns, rows, paged }: TableProps<T>) {
  const save = () => {
    const told = columns.filter(({ text }) => text !== undefined)
    const lines = rows.map((row) => told.map(({ text }) => String(text!(row) ?? '')))
    download(
      `${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.csv`,
      'text/csv',
      csvText([told.map(({ title }) => title), ...lines]),
    )
  }
  const isPart = paged?.hasNextPage || paged?.hasPreviousPage
  return (
    <button type="button" class="quiet" onClick={save} title={isPart ? 'The rows that are here now' : undefined}>
      CSV
    </button>
  )
}

/**
 * Arrow up and down move the focus to the same link or button of the next row, which takes fewer key presses than Tab.
 */
function onRowKey(event: KeyboardEvent): void {
  if ((event.key !== 'ArrowDown' && event.key !== 'ArrowUp') || !(event.target instanceof HTMLElement)) return
  const cell = event.target.closest('td')
  const row = cell?.parentElement
  const next = event.key === 'ArrowDown' ? row?.nextElementSibling : row?.previousElementSibling
  const target = cell && next?.children[[...row!.children].indexOf(cell)]?.querySelector<HTMLElement>('a, button')
  if (!target) return
  event.preventDefault()
  target.focus()
}

const classOf = ({ isNumber, isMinor }: { isNumber?: boolean; isMinor?: boolean }) =>
  isNumber || isMinor ? `${isNumber ? 'right' : ''} ${isMinor ? 'minor' : ''}`.trim() : undefined

function Head<T>({ columns }: { columns: readonly Column<T>[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column) => (
          <th key={column.title} scope="col" class={classOf(column)}>
            {column.title}
          </th>
        ))}
      </tr>
    </thead>
  )
}

/**
 * Props hold no elements and no rows of an earlier render: Preact keeps the props of some removed rows while a list is
 * scrolled, and each render would then keep the previous one in memory.
 */
interface RowProps<T> {
  readonly row: T
  readonly columns: readonly Column<T>[]
  /** Index among the loaded rows. */
  readonly index: number
  /** Index in the whole list, for virtual tables. */
  readonly listIndex?: number
  readonly canOpen: boolean
  readonly isSelected: boolean
  readonly heightPx?: number
}

function Row<T>({ row, columns, index, listIndex, canOpen, isSelected, heightPx }: RowProps<T>) {
  return (
    <tr
      class={`${canOpen ? 'can-open' : ''} ${isSelected ? 'selected' : ''}`}
      style={heightPx === undefined ? undefined : { height: `${heightPx}px` }}
      aria-rowindex={listIndex === undefined ? undefined : listIndex + 2}
      data-index={index}
    >
      {columns.map((column) => (
        <td key={column.title} class={classOf(column)}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  )
}

/** Handles clicks on rows, except on a link or button in the row, and except when text is selected. */
const clicksOf =
  <T,>({ rows, onRow }: TableProps<T>) =>
  ({ target }: MouseEvent) => {
    if (!(target instanceof Element) || target.closest('a, button') !== null) return
    if (window.getSelection()?.isCollapsed === false) return
    const row = rows[Number(target.closest('tr')?.dataset.index ?? Number.NaN)]
    if (row !== undefined) onRow?.(row)
  }

function Plain<T>(props: TableProps<T>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard
    <section class="table-scroll" tabIndex={0} aria-label={`${props.name}, scrolls sideways`}>
      <table>
        <caption class="unseen">{props.name}</caption>
        <Head columns={props.columns} />
        <tbody onKeyDown={onRowKey} onClick={clicksOf(props)}>
          {props.rows.map((row, index) => (
            <Row
              key={props.keyOf(row)}
              row={row}
              columns={props.columns}
              index={index}
              canOpen={props.onRow !== undefined}
              isSelected={props.isSelected?.(row) === true}
            />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function InSight<T>(props: TableProps<T>) {
  const { name, columns, rows, paged, keyOf, rowPx = ROW_PX } = props
  const scroller = useRef<HTMLElement>(null)
  const [, render] = useState(0)
  const options: VirtualizerOptions<HTMLElement, HTMLElement> = {
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: ROWS_AROUND,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => render((times) => times + 1),
  }
  const virtualizer = useMemo(() => new Virtualizer<HTMLElement, HTMLElement>(options), [])
  virtualizer.setOptions(options)
  useEffect(() => virtualizer.measure(), [rowPx])
  useEffect(() => virtualizer._didMount(), [virtualizer])
  useLayoutEffect(() => virtualizer._willUpdate())
  useRowAtTop(scroller, virtualizer, props)
  const items = virtualizer.getVirtualItems()
  const first = items[0]
  const last = items.at(-1)
  const isNearEnd = last !== undefined && last.index >= rows.length - READ_ON_ROWS
  const isNearStart = first !== undefined && first.index < READ_ON_ROWS
  useEffect(() => {
    if (paged === undefined || paged.isFetchingNextPage || paged.isFetchingPreviousPage) return
    if (isNearEnd && paged.hasNextPage) paged.fetchNextPage()
    else if (isNearStart && paged.hasPreviousPage) paged.fetchPreviousPage()
  }, [isNearEnd, isNearStart, rows])
  const after = last === undefined ? 0 : virtualizer.getTotalSize() - last.end
  const firstIndex = paged?.firstIndex ?? 0
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by the keyboard
    <section class="table-scroll in-sight" ref={scroller} tabIndex={0} aria-label={`${name}, scrolls`}>
      <table aria-rowcount={paged?.hasNextPage ? -1 : firstIndex + rows.length + 1}>
        <caption class="unseen">{name}</caption>
        <colgroup>
          {columns.map(({ title, width, isMinor }) => (
            <col
              key={title}
              class={isMinor ? 'minor' : undefined}
              style={width === undefined ? undefined : { width }}
            />
          ))}
        </colgroup>
        <Head columns={columns} />
        <tbody onKeyDown={onRowKey} onClick={clicksOf(props)}>
          {first !== undefined && first.start > 0 && <Space px={first.start} />}
          {items.map(({ index }) => {
            const row = rows[index]
            return row === undefined ? null : (
              <Row
                key={keyOf(row)}
                row={row}
                columns={columns}
                index={index}
                listIndex={firstIndex + index}
                canOpen={props.onRow !== undefined}
                isSelected={props.isSelected?.(row) === true}
                heightPx={rowPx}
              />
            )
          })}
          {after > 0 && <Space px={after} />}
        </tbody>
      </table>
    </section>
  )
}

/**
 * Keeps the top visible row in place when rows before it are added or removed. At the start of the list, new rows push
 * it down.
 */
function useRowAtTop<T>(
  scroller: { readonly current: HTMLElement | null },
  virtualizer: Virtualizer<HTMLElement, HTMLElement>,
  { rows, keyOf, paged, rowPx = ROW_PX }: TableProps<T>,
): void {
  const before = useRef({ rows, firstIndex: paged?.firstIndex ?? 0 })
  const firstIndex = paged?.firstIndex ?? 0
  const top = scroller.current?.scrollTop ?? 0
  let moved: number | null = null
  if (before.current.rows !== rows && scroller.current !== null) {
    const isAtStart = top < rowPx / 2 && before.current.firstIndex === 0 && firstIndex === 0
    const index = Math.floor(top / rowPx)
    const row = before.current.rows[index]
    const key = row === undefined ? null : keyOf(row)
    const now = key === null || isAtStart ? -1 : rows.findIndex((one) => keyOf(one) === key)
    if (now >= 0 && now !== index) moved = top + (now - index) * rowPx
    // If the row is gone, as after "to the first row", the view starts at the top.
    else if (now < 0 && !isAtStart && firstIndex < before.current.firstIndex) moved = 0
    if (moved !== null) virtualizer.scrollOffset = moved
    before.current = { rows, firstIndex }
  }
  useLayoutEffect(() => {
    if (moved !== null && scroller.current !== null) scroller.current.scrollTop = moved
  }, [rows])
}

/** A spacer for rows that are not rendered. It has a single cell: more would bring back hidden columns. */
function Space({ px }: { px: number }) {
  return (
    <tr class="space">
      <td style={{ height: `${px}px` }} />
    </tr>
  )
}
