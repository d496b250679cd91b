/** Kinds of environment variables: parser, default and documentation of each. */
import { isIPv4, isIPv6 } from 'node:net'
import { z } from 'zod'

/** An address to listen on. `host` is an IPv6 address without brackets, an IPv4 address or a name. */
export interface SocketAddress {
  readonly host: string
  readonly port: number
}

/** One variable. */
export interface Row<T> {
  readonly name: string
  readonly type: string
  readonly fallback: T
  /** The default as documents print it. */
  readonly shown: string
  /** Reaction to an unreadable value: `refused` stops the start, `default` warns and uses the default. */
  readonly ifUnreadable: 'refused' | 'default'
  readonly meaning: string
  readonly schema: z.ZodType<T, string>
  /** A number outside of the range is moved to its nearer end, with a warning. */
  readonly range?: readonly [min: number, max: number]
}

/**
 * Reads one variable. Adds refused values to `errors`, and values that are used differently than written to `warnings`.
 */
export function readRow(row: Row<unknown>, env: NodeJS.ProcessEnv, errors: string[], warnings: string[]): unknown {
  const text = trimmed(env, row.name)
  if (text === '') return row.fallback
  const result = row.schema.safeParse(text)
  if (!result.success) {
    if (row.ifUnreadable === 'refused') errors.push(`${row.name}: expected ${row.type}`)
    else warnings.push(`${row.name}: expected ${row.type}; the default ${row.shown} is used`)
    return row.fallback
  }
  const value = result.data
  if (row.range === undefined || typeof value !== 'number') return value
  const [min, max] = row.range
  const moved = Math.min(Math.max(value, min), max)
  if (moved !== value)
    warnings.push(`${row.name}: ${moved < value ? `more than ${max}` : `less than ${min}`}; ${moved} is used`)
  return moved
}

/** The trimmed value; empty if the variable is not set. */
export function trimmed(env: NodeJS.ProcessEnv, name: string): string {
  return env[name]?.trim() ?? ''
}

/** A row whose default is shown as it is and whose unreadable values stop the start, unless `given` says otherwise. */
const row = <T>(
  name: string,
  type: string,
  fallback: T,
  meaning: string,
  schema: z.ZodType<T, string>,
  given: Partial<Row<T>> = {},
): Row<T> => ({ name, type, fallback, shown: `\`${fallback}\``, ifUnreadable: 'refused', meaning, schema, ...given })

export function word<const W extends string>(name: string, words: readonly W[], fallback: NoInfer<W>, meaning: string) {
  const schema = z.string().toLowerCase().pipe(z.enum(words)) as z.ZodType<W, string>
  return row<W>(name, words.join(', '), fallback, meaning, schema)
}

export function flag(name: string, fallback: boolean, meaning: string) {
  const schema = z.stringbool({ truthy: ['true', '1', 'yes', 'on'], falsy: ['false', '0', 'no', 'off'] })
  return row(name, 'true, false', fallback, meaning, schema)
}

export function whole(name: string, fallback: number, range: readonly [min: number, max: number], meaning: string) {
  const schema = z
    .string()
    .regex(/^\+?\d+$/)
    .transform(Number)
  const type = range[0] === 0 ? 'whole number' : `whole number from ${range[0]}`
  return row(name, type, fallback, meaning, schema, { ifUnreadable: 'default', range })
}

/** A number from 0 on, with or without a fraction. */
export function decimal(name: string, fallback: number, meaning: string) {
  const schema = z
    .string()
    .regex(/^\+?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i)
    .transform(Number)
    .refine(Number.isFinite)
  return row(name, 'number', fallback, meaning, schema, { ifUnreadable: 'default' })
}

export const text = (name: string, fallback: string, meaning: string) =>
  row(name, 'path', fallback, meaning, z.string() as z.ZodType<string, string>)

/** A DNS subdomain (RFC 1123), as prefixes of labels and annotations must be. */
export function dnsName(name: string, fallback: string, meaning: string) {
  const schema = z
    .string()
    .max(253)
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/)
  return row(name, 'DNS name', fallback, meaning, schema)
}

/** An address; the default may be several, tried in order. */
export function address(name: string, defaults: readonly string[], meaning: string, shownDefault?: string) {
  const schema: z.ZodType<readonly SocketAddress[], string> = z.string().transform((value, context) => {
    const parsed = parseAddress(value)
    if (parsed === null) context.addIssue('not an address')
    return parsed === null ? [] : [parsed]
  })
  const shown = shownDefault ?? defaults.map((one) => `\`${one}\``).join(', then ')
  return row(name, 'host:port or [IPv6]:port', addresses(defaults), meaning, schema, { shown })
}

/** Parses addresses that are known to be valid. */
export const addresses = (texts: readonly string[]): readonly SocketAddress[] => texts.map((one) => parseAddress(one)!)

/** Origins of web pages, separated by commas, or `*` for all. */
export function origins(name: string, meaning: string) {
  const isOrigin = (one: string) => /^https?:\/\//.test(one) && URL.canParse(one) && new URL(one).origin === one
  return list(
    name,
    'https://name:port, separated by commas, or `*`',
    meaning,
    (all) => all.every(isOrigin) || (all.length === 1 && all[0] === '*'),
  )
}

/** Host names, separated by commas, or `*` for all. */
export function hostNames(name: string, meaning: string) {
  const isHost = (one: string) => one === '*' || /^(?:[\w-]+(?:\.[\w-]+)*|\[[\da-f:.]+\])$/i.test(one)
  return list(name, 'names, separated by commas, or `*`', meaning, (all) => all.every(isHost))
}

/** Parts between commas, of which there is at least one. */
function list(name: string, type: string, meaning: string, isValid: (parts: readonly string[]) => boolean) {
  const schema: z.ZodType<readonly string[], string> = z
    .string()
    .transform((value) =>
      value
        .split(',')
        .map((one) => one.trim())
        .filter((one) => one !== ''),
    )
    .refine((parts) => parts.length > 0 && isValid(parts))
  return row(name, type, [], meaning, schema, { shown: 'unset' })
}

export function httpUrl(name: string, ifUnreadable: 'refused' | 'default', meaning: string) {
  const schema: z.ZodType<string | null, string> = z
    .string()
    .refine((value) => /^https?:\/\//i.test(value) && URL.canParse(value))
  return row(name, 'http:// or https:// URL', null, meaning, schema, { shown: 'unset', ifUnreadable })
}

export function databaseUrl(name: string, meaning: string) {
  // `readDatabase` checks the rest of the URL, with better messages.
  const schema: z.ZodType<string | null, string> = z.string().regex(/^postgres(ql)?:\/\//)
  return row(name, 'postgres://user:password@host:port/database', null, meaning, schema, { shown: 'embedded server' })
}

/** `host:port`, `[IPv6]:port`; null for anything else. Port 0 lets the system choose. */
function parseAddress(value: string): SocketAddress | null {
  const [, v6, name, digits] = /^(?:\[([^\]]*)\]|([\w.-]+)):(\d{1,5})$/.exec(value) ?? []
  const port = Number(digits)
  const host = v6 ?? name
  if (host === undefined || !(port <= 65_535)) return null
  // A name whose last label is a number must be an IPv4 address.
  const known = v6 === undefined ? isIPv4(host) || !/(^|\.)\d+$/.test(host) : isIPv6(v6)
  return known ? { host, port } : null
}

/** The value of a variable for the log, without a password. */
export function printable(value: unknown): string | number | boolean | null {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(', ')
  if (Array.isArray(value))
    return value
      .map((one: SocketAddress) => `${one.host.includes(':') ? `[${one.host}]` : one.host}:${one.port}`)
      .join(', ')
  if (typeof value === 'string' && value.includes('://')) return withoutPassword(value)
  return value as string | number | boolean | null
}

/** The URL without its query (which may contain a password) and with the password replaced by stars. */
function withoutPassword(url: string): string {
  const [, scheme, credentials, location, rest] = /^(\w+:\/\/)(?:([^?#]*)@)?([^?#]*)(.*)$/s.exec(url) ?? []
  // The `?` may be part of the password then, and so may everything that looks like a host.
  if (rest?.includes('@')) return `${scheme}***`
  if (credentials === undefined) return `${scheme}${location}`
  const colon = credentials.indexOf(':')
  return `${scheme}${colon < 0 ? credentials : `${credentials.slice(0, colon)}:***`}@${location}`
}

/** A Markdown table of variables (name, type, default, meaning), without a final newline. */
export function asTable(lines: readonly (readonly string[])[]): string {
  const rows = lines.map(([name, ...rest]) => `| \`${name}\` | ${rest.join(' | ')} |`)
  return ['| Variable | Type | Default | Meaning |', '|---|---|---|---|', ...rows].join('\n')
}
