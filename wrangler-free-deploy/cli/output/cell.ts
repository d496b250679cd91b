/** Values of columns, as people and as programs read them. */
import { oneLine } from '../../../lib/text/one-line.ts'

/** The value of a column; null is unknown, or nothing. */
export type Value = string | number | boolean | null | undefined | readonly string[]
export type Colour = 'red' | 'yellow' | 'green'

export interface Column<Row> {
  readonly header: string
  readonly of: (row: Row) => Value
  /** Only with `-o wide`, and as CSV. */
  readonly isWide?: true
  /** The text for people, such as a number with its unit. */
  readonly shownOf?: (row: Row) => Value
  /** The header of CSV, where that has to say the unit. */
  readonly csvHeader?: string
  /** The value is a time of the API. */
  readonly isTime?: true
  /** A sentence, which a terminal breaks between words instead of cutting it; only where it is the last column. */
  readonly isSentence?: true
  /** Characters at least, for a table whose rows are not known when it begins. */
  readonly minWidth?: number
  readonly colourOf?: (row: Row) => Colour | null
}

/** Stands for null, which is not an empty text. */
const NOTHING = '-'

/** The cell of a table: one line, in which nothing acts on a terminal. */
export function cellOf(value: Value, isTime: boolean, isUtc: boolean): string {
  if (value === null || value === undefined || value === '') return NOTHING
  if (Array.isArray(value)) return value.length === 0 ? NOTHING : oneLine(value.join(','))
  return isTime ? timeText(String(value), isUtc) : oneLine(String(value))
}

/** The field of a line of CSV: times as RFC 3339, UTC; lists with blanks between; nothing for null. */
export function fieldOf(value: Value, isTime: boolean): string {
  if (value === null || value === undefined) return ''
  if (Array.isArray(value)) return value.join(' ')
  return isTime ? instantOf(String(value)) : String(value)
}

/** Times of the API are naive UTC, or have a zone. */
const instantOf = (time: string): string => (/(Z|[+-]\d\d:\d\d)$/.test(time) ? time : `${time}Z`)

const two = (n: number): string => String(n).padStart(2, '0')

/** To the second, in the time zone of the machine (TZ), or UTC with a `Z`. */
export function timeText(time: string, isUtc: boolean): string {
  const at = new Date(instantOf(time))
  if (Number.isNaN(at.getTime())) return oneLine(time)
  if (isUtc) return `${at.toISOString().slice(0, 'yyyy-mm-ddThh:mm:ss'.length)}Z`
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}
