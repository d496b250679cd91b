/** Numbers with a unit: people read `250m`, programs the number under a header that names the unit. */
import type { Column, Value } from './cell.ts'

type Quantity = number | null | undefined
type More<Row> = Pick<Column<Row>, 'isWide' | 'colourOf'>

const MEBI = 2 ** 20
const NS_PER_MS = 1e6
const NS_PER_SECOND = 1e9
const US_PER_MS = 1e3

/** With one digit, if it is not 0. */
const oneDigit = (value: number): string => String(Number(value.toFixed(1)))

const quantity =
  (unit: string, textOf: (value: number) => string) =>
  <Row>(header: string, of: (row: Row) => Quantity, more: More<Row> = {}): Column<Row> => ({
    ...{ header, of, csvHeader: `${header} ${unit}`, ...more },
    shownOf: (row): Value => {
      const value = of(row)
      return value === null || value === undefined ? null : textOf(value)
    },
  })

/** Small values keep a digit: an idle container uses less than one. */
export const millisText = (millis: number): string => `${millis < 10 ? oneDigit(millis) : Math.round(millis)}m`
export const mebiText = (bytes: number): string => `${(bytes / MEBI).toFixed(1)}Mi`
export const percentText = (percent: number): string => `${oneDigit(percent)}%`
export const waitText = (ns: number): string =>
  ns < NS_PER_SECOND ? `${oneDigit(ns / NS_PER_MS)}ms` : `${oneDigit(ns / NS_PER_SECOND)}s`

/** Thousandths of a processor. */
export const cpuColumn = quantity('millis', millisText)
export const memoryColumn = quantity('bytes', mebiText)
/** A pressure, as the kernel says it. */
export const percentColumn = quantity('percent', percentText)
/** A part of 1. */
export const shareColumn = quantity('ratio', (ratio) => percentText(ratio * 100))
export const waitColumn = quantity('ns', waitText)
export const delayColumn = quantity('us', (us) => `${oneDigit(us / US_PER_MS)}ms`)
