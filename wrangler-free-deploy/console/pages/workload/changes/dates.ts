/** Dates between the fields, which are local and without a zone, and the address, which the API reads. */

const MS_PER_MINUTE = 60_000

/** The form that the field takes. Blank for a text such as `7d`, and for none. */
export function inputText(value: string): string {
  const ms = Date.parse(value)
  if (Number.isNaN(ms)) return ''
  return new Date(ms - new Date(ms).getTimezoneOffset() * MS_PER_MINUTE).toISOString().slice(0, 16)
}

/** Null for a field that is blank or not complete. */
export function typedTime(value: string): string | null {
  const date = new Date(value)
  return value === '' || Number.isNaN(date.getTime()) ? null : date.toISOString().replace('.000Z', 'Z')
}
