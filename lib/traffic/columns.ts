/**
 * Lists of flows, from columns to JSON. PostgreSQL spends most of a long list on building JSON row by row; joining each
 * column into one text costs it a third of that, and laying the columns side by side as JSON is one loop over bytes here.
 */
const SEPARATOR = 0x1f
const NULL_MARK = 0x01

const HEX = Buffer.from('0123456789abcdef')
/** Room for escapes in one list; names and addresses need none. */
const ESCAPES_BYTES = 64 * 1024

type Kind = 'text' | 'time' | 'number'

/** The keys of a flow in wire order (interop-core D5). */
const COLUMNS: readonly [key: string, kind: Kind][] = [
  ['uuid', 'text'],
  ['pod_name', 'text'],
  ['pod_namespace', 'text'],
  ['pod_ip', 'text'],
  ['pod_port', 'text'],
  ['ip_protocol', 'text'],
  ['traffic_type', 'text'],
  ['traffic_in_out_ip', 'text'],
  ['traffic_in_out_port', 'text'],
  ['decision', 'text'],
  ['time_stamp', 'time'],
  ['peer_kind', 'text'],
  ['peer_namespace', 'text'],
  ['peer_name', 'text'],
  ['peer_uid', 'text'],
  ['peer_workload_kind', 'text'],
  ['peer_workload_name', 'text'],
  ['peer_resolved_at', 'time'],
  ['drop_cause', 'text'],
  ['syn_retries', 'number'],
]

const TIME_COLUMN = COLUMNS.findIndex(([key]) => key === 'time_stamp')
const KEYS = COLUMNS.map(([key], i) => Buffer.from(`${i === 0 ? '{' : ','}"${key}":`))
const KEYS_LENGTH = KEYS.reduce((sum, key) => sum + key.length, 0)
const KINDS = COLUMNS.map(([, kind]) => kind)

/**
 * The select list over rows `t`: their number, the number of nulls in them, then each column joined with the separator, a
 * null as the mark. The two numbers prove that no value holds a separator or looks like the mark.
 */
export const COLUMN_LIST = [
  'count(*)::text',
  `coalesce(sum(num_nulls(${COLUMNS.map(([key]) => `t.${key}`).join(', ')})), 0)::text`,
  ...COLUMNS.map(([key, kind]) => `string_agg(coalesce(t.${key}${kind === 'text' ? '' : '::text'}, e'\\x01'), e'\\x1f')`),
].join(', ')

export interface Rendered {
  /** The flows as JSON objects joined with commas, without the brackets of an array. */
  json: Buffer
  /** The same within the brackets, on the same memory, where there was room for them. */
  array?: Buffer
  count: number
  /** Where the list ended, for the page that follows; null when it is empty. */
  last: { time: string; uuid: string } | null
}

/**
 * One row of `COLUMN_LIST` as JSON; null for the rare list that cannot be rendered so: a value holds a byte that the columns
 * were joined with, or very many bytes need escaping.
 */
export function render(row: readonly (Buffer | null)[]): Rendered | null {
  const count = Number(row[0])
  const nulls = Number(row[1])
  if (count === 0) return { json: Buffer.alloc(0), count, last: null }
  const values = row.slice(2) as Buffer[]
  const at = new Int32Array(COLUMNS.length)
  const out = Buffer.allocUnsafe(
    values.reduce((sum, value) => sum + value.length, ESCAPES_BYTES) + count * (KEYS_LENGTH + 2 + 4 * COLUMNS.length),
  )
  // The brackets of an array are there in case they are wanted: adding them later would copy megabytes.
  out[0] = 0x5b
  let end = 1
  let nullsSeen = 0
  for (let r = 0; r < count; r++) {
    if (r > 0) out[end++] = 0x2c
    for (let c = 0; c < COLUMNS.length; c++) {
      const key = KEYS[c]!
      for (let i = 0; i < key.length; i++) out[end++] = key[i]!
      const value = values[c]!
      let from = at[c]!
      const first = value[from]
      if (first === NULL_MARK && (from + 1 === value.length || value[from + 1] === SEPARATOR)) {
        out[end] = 0x6e
        out[end + 1] = 0x75
        out[end + 2] = 0x6c
        out[end + 3] = 0x6c
        end += 4
        nullsSeen++
        at[c] = from + 2
        continue
      }
      const kind = KINDS[c]
      let byte: number
      if (kind === 'text') {
        out[end++] = 0x22
        for (; from < value.length; from++) {
          byte = value[from]!
          if (byte > 0x22 && byte !== 0x5c) out[end++] = byte
          else if (byte === SEPARATOR) break
          else if (byte === 0x20 || byte === 0x21) out[end++] = byte
          else end = writeEscape(out, end, byte)
        }
        out[end++] = 0x22
      } else if (kind === 'time') {
        out[end++] = 0x22
        let fraction = 0
        for (; from < value.length; from++) {
          byte = value[from]!
          if (byte === SEPARATOR) break
          if (byte === 0x2e) fraction = end
          out[end++] = byte === 0x20 ? 0x54 : byte
        }
        // The database prints as few fraction digits as it can; the wire has three or six.
        if (fraction > 0) for (const want = fraction + (end - fraction > 4 ? 7 : 4); end < want; ) out[end++] = 0x30
        out[end++] = 0x22
      } else {
        for (; from < value.length && value[from] !== SEPARATOR; from++) out[end++] = value[from]!
      }
      at[c] = from + 1
    }
    out[end++] = 0x7d
  }
  // What did not fit was not written: more escapes than there was room for.
  const whole = end < out.length && nullsSeen === nulls && values.every((value, c) => at[c] === value.length + 1)
  if (!whole) return null
  out[end] = 0x5d
  return {
    json: out.subarray(1, end),
    array: out.subarray(0, end + 1),
    count,
    last: { time: lastOf(values[TIME_COLUMN]!), uuid: lastOf(values[0]!) },
  }
}

/** `\"`, `\\`, or six bytes for a control character (RFC 8259, section 7). */
function writeEscape(out: Buffer, end: number, byte: number): number {
  out[end++] = 0x5c
  if (byte === 0x22 || byte === 0x5c) {
    out[end++] = byte
    return end
  }
  for (const one of [0x75, 0x30, 0x30, HEX[byte >> 4]!, HEX[byte & 15]!]) out[end++] = one
  return end
}

const lastOf = (value: Buffer) => value.toString('utf8', value.lastIndexOf(SEPARATOR) + 1)
