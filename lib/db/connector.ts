import type postgres from 'postgres'
import type { Log } from '../observability/log.ts'
import { type Connection, type DriverSettings, driverOptions } from './driver-options.ts'
import { DatabaseUnavailable } from './errors.ts'
import type { GateName } from './gate.ts'
import { openPool, partsOf } from './open-pool.ts'
import { sessionSettings, settingStatement } from './session.ts'
import { dial, type Endpoint } from './socket.ts'
import type { Slot } from './statement.ts'
import { secured } from './tls.ts'
import type { TlsSettings } from './tls-settings.ts'

/** From the call of connect until the server accepts the login. */
const CONNECT_TIMEOUT_MS = 5_000
const PROTOCOL_VIOLATION = '08P01'

export interface Target {
  gate: GateName
  connection: Connection
  settings: DriverSettings
  log: Log
}

/** Called, once or more often, when the connection of a slot is gone. Must not throw: nobody would catch it. */
type Closed = (slot: Slot, driver: postgres.Sql, failure: unknown) => void

/** Opens driver instances of one connection each, trying host after host. They never reconnect by themselves. */
export class Connector {
  readonly #target: Target
  readonly #closed: Closed
  readonly #tls: TlsSettings | undefined
  #hostIndex = 0
  /** A pooler refused the session settings in the packet that opens a connection. */
  #isBare = false

  constructor(target: Target, closed: Closed) {
    this.#target = target
    this.#closed = closed
    this.#tls = partsOf(target.connection).tls
  }

  /** Gives the slot a connecting driver. */
  open(slot: Slot): postgres.Sql {
    const { gate, settings } = this.#target
    const connection = this.#isBare ? withoutSettings(this.#target.connection) : this.#target.connection
    let attempts = 0
    let failure: unknown = null
    // Made on demand: an error keeps the frames it was made in, and with them the first statement of the connection, in
    // memory.
    const reason = () => failure ?? new DatabaseUnavailable('connection closed', 'CONNECTION_CLOSED')
    const options = {
      ...driverOptions(gate, settings, this.#isBare),
      socket: (endpoint: Endpoint) => {
        // A second round over the hosts means that the driver reconnects by itself.
        if (slot.driver !== driver || attempts++ === endpoint.host.length) {
          this.#closed(slot, driver, reason())
          throw new DatabaseUnavailable('connection closed during startup', 'CONNECTION_CLOSED')
        }
        const index = this.#hostIndex++
        const socket = dial(endpoint, index)
        socket.once('connect', () => {
          this.#hostIndex = index
        })
        const fail = (error: Error) => {
          failure = error
        }
        socket.once('error', fail)
        slot.socket = socket
        const ready = secured(socket, endpoint, index, this.#tls)
        if (ready instanceof Promise) void ready.then((secure) => secure.once('error', fail))
        return ready
      },
      onclose: () => this.#closed(slot, driver, reason()),
      // The server sends its first parameter after it has accepted the login.
      onparameter: () => {
        if (slot.driver !== driver) return
        clearTimeout(slot.connectTimer)
        slot.isAuthenticated = true
      },
    } as postgres.Options<Record<string, postgres.PostgresType>>
    const driver: postgres.Sql = openPool(connection, options)
    slot.driver = driver
    slot.isAuthenticated = false
    slot.connectTimer = setTimeout(
      () =>
        this.#closed(
          slot,
          driver,
          new DatabaseUnavailable(`no connection within ${CONNECT_TIMEOUT_MS} ms`, 'CONNECT_TIMEOUT'),
        ),
      CONNECT_TIMEOUT_MS,
    ).unref()
    // Sent before the first statement of the connection. Through a transaction pooler it is useless and harmless.
    if (this.#isBare && settings.prepare)
      driver.unsafe(settingStatement(this.#sessionSettings())).catch((error) => this.#closed(slot, driver, error))
    return driver
  }

  /**
   * To be called with the error of a refused connection: after a pooler refused the settings, the next one is opened
   * without.
   */
  refused(error: unknown): void {
    const { code, message } = error as { code?: string; message?: string }
    if (this.#isBare || code !== PROTOCOL_VIOLATION || !/startup parameter/.test(message ?? '')) return
    this.#isBare = true
    const { gate, log } = this.#target
    log.warn(
      { gate, reason: message, settings: Object.keys(this.#sessionSettings()) },
      'the pooler refuses settings of the session: each new connection makes them by a statement; ' +
        'in transaction mode set DB_PREPARE=false',
    )
  }

  #sessionSettings(): Record<string, string> {
    const { connection, gate, settings } = this.#target
    const { options: _, application_name: __, ...rest } = partsOf(connection).settings ?? {}
    return { ...rest, ...sessionSettings(gate, settings.statementTimeoutMs) }
  }
}

function withoutSettings(connection: Connection): Connection {
  const { settings, ...rest } = partsOf(connection)
  return rest
}
