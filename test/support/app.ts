import { after } from 'node:test'
import { pino } from 'pino'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { openDatabase } from '../../lib/db/index.ts'
import { lineOptions } from '../../lib/observability/log.ts'
import { assertContract } from './contract.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'

/** Tokens for tests of access, one for each variable; pass them as `env`. */
export const TOKENS = {
  BROKER_TOKEN_READ: 'read-token-for-tests',
  BROKER_TOKEN_INGEST: 'ingest-token-for-tests',
  BROKER_TOKEN_SUPPLYCHAIN: 'supplychain-token-for-tests',
  BROKER_TOKEN_ADMIN: 'admin-token-for-tests',
  BROKER_AUTH_TOKEN: 'shared-token-for-tests',
}

/** Limit for the wait for a slot, for read memory and for the evaluator: so long that a slow machine fails no test. */
export const PATIENCE_MS = 60_000

export interface Answer {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a body is what the test says it is.
  json: any
}

/**
 * The whole app without a socket, on a database of its own or on that of another app. `env` configures it; everything
 * ends with the test file. `logged` holds the lines of the log, parsed.
 */
export async function startApp(env: NodeJS.ProcessEnv = {}, on?: { database: TestDatabase }) {
  const database = on?.database ?? (await createTestDatabase())
  const logged: Record<string, unknown>[] = []
  const log = pino(
    { level: 'debug', serializers: lineOptions.serializers, hooks: lineOptions.hooks },
    { write: (line: string) => void logged.push(JSON.parse(line)) },
  )
  const config = loadConfig({
    NODE_ENV: 'test',
    LOG_LEVEL: 'debug',
    AUDIT_EVAL_TIMEOUT_MS: String(PATIENCE_MS),
    BROKER_READ_ACQUIRE_WAIT_MS: String(PATIENCE_MS),
    // Tests store rows of any age, which retention would hide.
    AUDIT_VERDICTS_RETENTION_DAYS: '0',
    SECCOMP_DENIALS_RETENTION_DAYS: '0',
    RUNTIME_INVENTORY_RETENTION_DAYS: '0',
    IMAGE_ATTESTATION_RETENTION_DAYS: '0',
    ...env,
  })
  const db = openDatabase({
    connection: database.connection,
    poolMax: 8,
    statementTimeoutMs: config.dbStatementTimeoutMs,
    waitMs: PATIENCE_MS,
    prepare: true,
    applicationName: 'broker-test',
    log,
  })
  const deps = buildDeps({ config, db, log })
  const app = createApp(deps, routes)
  after(async () => {
    await db.end(1_000)
    if (!on) await database.drop()
  })

  /**
   * `body` is sent as JSON unless it is a string or bytes. Fails on an answer that the OpenAPI document does not allow.
   */
  async function request(
    method: string,
    path: string,
    options: { body?: unknown; headers?: Record<string, string>; token?: string } = {},
  ): Promise<Answer> {
    const { body, token } = options
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...options.headers,
    }
    const answer = await app.request(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: (raw ? body : JSON.stringify(body)) as string }),
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    await assertContract(app, method, path, answer, bytes)
    const text = bytes.toString()
    return { status: answer.status, headers: answer.headers, text, json: parsed(text) }
  }
  return {
    app,
    deps,
    db,
    database,
    sql: database.adminSql,
    url: database.url,
    logged,
    request,
    get: (path: string, options?: { headers?: Record<string, string>; token?: string }) =>
      request('GET', path, options),
    post: (path: string, body: unknown, options?: { headers?: Record<string, string>; token?: string }) =>
      request('POST', path, { ...options, body }),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
