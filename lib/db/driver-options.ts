/** The options of every connection of the service, with the reason for each. */
import type postgres from 'postgres'
import type { GateName } from './gate.ts'
import { openingSettings, sessionSettings } from './session.ts'
import type { TlsSettings } from './tls-settings.ts'

/** A connection URL, or the parts of one. */
export type Connection =
  | string
  | {
      host?: string | string[]
      port?: number | number[]
      path?: string
      user?: string
      /** A function is called for each connection, and must not throw. */
      password?: string | (() => string)
      database?: string
      tls?: TlsSettings
      /** Session settings; those of the service override them. */
      settings?: Record<string, string>
      target_session_attrs?: string
    }

export interface DriverSettings {
  /** 0 means no limit. */
  statementTimeoutMs: number
  prepare: boolean
  applicationName: string
  onnotice: (notice: postgres.Notice) => void
}

const DATE_OIDS = [1082, 1114, 1184]

/** OIDs of the array types that statements may cast parameters to. */
const ARRAY_OIDS = {
  json: 199,
  cidr: 651,
  bool: 1000,
  bytea: 1001,
  int2: 1005,
  int4: 1007,
  text: 1009,
  varchar: 1015,
  int8: 1016,
  float4: 1021,
  float8: 1022,
  inet: 1041,
  timestamp: 1115,
  date: 1182,
  timestamptz: 1185,
  numeric: 1231,
  uuid: 2951,
  jsonb: 3807,
}

function element(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) throw new TypeError('undefined in an array parameter')
  if (Array.isArray(value)) return arrayLiteral(value)
  const text =
    value instanceof Date
      ? value.toISOString()
      : value instanceof Uint8Array
        ? `\\x${Buffer.from(value).toString('hex')}`
        : String(value)
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

function arrayLiteral(value: unknown): string {
  return Array.isArray(value) ? `{${value.map(element).join(',')}}` : String(value)
}

// The driver learns array types by a query on each connection, whose rejection nobody handles. That query is switched
// off below, so the array types in use are declared here. In results they stay text.
function arrayTypes(): Record<string, postgres.PostgresType> {
  const types: Record<string, unknown> = {}
  for (const [name, oid] of Object.entries(ARRAY_OIDS)) types[`${name}Array`] = { to: oid, serialize: arrayLiteral }
  return types as Record<string, postgres.PostgresType>
}

const types = {
  ...arrayTypes(),
  // Text both ways: a Date has milliseconds where the database has microseconds, and reads a zoneless timestamp in the
  // time zone of the process.
  date: {
    to: 1184,
    from: DATE_OIDS,
    serialize: (value: unknown) => (value instanceof Date ? value.toISOString() : String(value)),
    parse: (text: string) => text,
  },
}

/**
 * Options of one connection. They leave out the settings of the session without prepared statements, which means a
 * transaction pooler, and with `isBare`, after a pooler refused them. In results bigint, numeric, dates and times are
 * text; json and jsonb are parsed unless read raw.
 */
export function driverOptions(
  gate: GateName,
  settings: DriverSettings,
  isBare = false,
): postgres.Options<Record<string, postgres.PostgresType>> {
  return {
    max: 1,
    prepare: settings.prepare,
    fetch_types: false,
    // The driver's own timer may fire on a socket that it has dropped, and then throws where nobody can catch it; the
    // connector has its own.
    connect_timeout: 0,
    // The pool's reaper closes idle connections; the timers of the driver never end a busy one.
    idle_timeout: null as unknown as undefined,
    max_lifetime: null,
    // The socket is opened with keep-alive.
    keep_alive: null,
    debug: false,
    onnotice: settings.onnotice,
    connection: {
      ...openingSettings(settings.applicationName),
      ...(settings.prepare && !isBare ? sessionSettings(gate, settings.statementTimeoutMs) : {}),
    },
    types,
  }
}
