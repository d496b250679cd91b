/** Converts dates between the fields (local, without a zone) and the address (as the API reads it). */

const MS_PER_MINUTE = 60_000

/** The value of a `datetime-local` field. Empty for a relative time such as `7d`, and for no value. */
export function inputText(value: string): string {
  const ms = Date.parse(value)
  if (Number.isNaN(ms)) return ''
  return new Date(ms - new Date(ms).getTimezoneOffset() * MS_PER_MINUTE).toISOString().slice(0, 16)
}

/** Null for an empty or incomplete field. */
export function typedTime(value: string): string | null {
  const date = new Date(value)
  return value === '' || Number.isNaN(date.getTime()) ? null : date.toISOString().replace('.000Z', 'Z')
}
