/**
 * The one table of the console: few rows are rendered as they are, many only where they are in sight. It has CSV of its
 * rows, and the commands that give the same. Of a list that is read page by page it shows the pages that are kept, and
 * keeps the row at the top in its place as others come and go around it.
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
/** Distance to an end at which the next page is read. */
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
  /** Left out on narrow screens, as what a row's detail has as well. */
  readonly isMinor?: boolean
}

export interface TableProps<T> {
  /** Names the table for screen readers, and its CSV file. */
  readonly name: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly commands?: Commands
  /** A list that is read page by page: it reads on as an end comes near. */
  readonly paged?: PagedReading<unknown>
  /** Shown instead of a table without rows. */
  readonly empty: ComponentChildren
  /** Further controls, beside the CSV button. */
  readonly tools?: ComponentChildren
  /** Instead of CSV of the rows, where the whole list can be had. */
  readonly csv?: ComponentChildren
  /** Height of a row where only those in sight are rendered. */
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

/** How many rows are here, or which ones of a list that is longer. */
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

/** Up and down go to the same link or button of the next row, so that rows are walked without a Tab for each link. */
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
 * Rows come and go while a list is scrolled, and Preact keeps the properties of some that are gone: they must not lead
 * to elements or to the rows of an earlier render, or each render would keep the one before.
 */
interface RowProps<T> {
  readonly row: T
  readonly columns: readonly Column<T>[]
  /** Its place among the rows that are here. */
  readonly index: number
  /** Its place in the whole list, where not all rows are rendered. */
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

/** The clicks on rows. One on a link or a button in a row is theirs; so is the end of selecting text. */
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

/** Keeps the row at the top of the view where it is when rows come or go before it. The first row of all stays free. */
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
    // Where all rows are others, as after "to the first row", the view begins anew.
    else if (now < 0 && !isAtStart && firstIndex < before.current.firstIndex) moved = 0
    if (moved !== null) virtualizer.scrollOffset = moved
    before.current = { rows, firstIndex }
  }
  useLayoutEffect(() => {
    if (moved !== null && scroller.current !== null) scroller.current.scrollTop = moved
  }, [rows])
}

/** Takes the room of rows that are out of sight. One cell: columns that are left out would come back with more. */
function Space({ px }: { px: number }) {
  return (
    <tr class="space">
      <td style={{ height: `${px}px` }} />
    </tr>
  )
}
