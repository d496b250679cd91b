import type postgres from 'postgres'
import type { Sql } from './statement.ts'

type Value = string | number | boolean | null

/**
 * A statement whose text is put together once: `$1`, `$2`, … stand for its values, each once and in this order (TypeError otherwise).
 * With fragments in fragments, every call would make a query of the driver for each of them, and the driver's queries are costly
 * garbage.
 */
export function fixed<T extends readonly postgres.MaybeRow[] = postgres.Row[]>(
  text: string,
): (sql: Sql, ...values: Value[]) => postgres.PendingQuery<T> {
  const pieces = text.split(/\$\d+/)
  for (const [i, placeholder] of (text.match(/\$\d+/g) ?? []).entries())
    if (placeholder !== `$${i + 1}`) throw new TypeError(`expected $${i + 1}, found ${placeholder}`)
  const strings = Object.assign(pieces, { raw: pieces })
  return (sql, ...values) => {
    if (values.length !== pieces.length - 1)
      throw new TypeError(`${pieces.length - 1} values are wanted, not ${values.length}`)
    return sql<T>(strings, ...values)
  }
}
