import type { Address } from '../db/address.ts'
import { ConfigError } from '../errors.ts'
import { databaseVariables, printableDatabase, readDatabase } from './database-variables.ts'
import { rows, type Settings } from './settings.ts'
import {
  type ConfiguredToken,
  readToken,
  type TokenFiles,
  tokenFilesOf,
  tokenLines,
  unknownTokens,
} from './token-variables.ts'
import { addresses, asTable, printable, type Row, readRow, trimmed } from './variables.ts'

const TOKEN_VARIABLES = [
  'BROKER_TOKEN_READ',
  'BROKER_TOKEN_INGEST',
  'BROKER_TOKEN_SUPPLYCHAIN',
  'BROKER_TOKEN_ADMIN',
  'BROKER_TOKEN_CATALOG',
  'BROKER_AUTH_TOKEN',
] as const
export type TokenVariable = (typeof TOKEN_VARIABLES)[number]

/** Connections that stay free while every permit of the audit stores a verdict. */
const POOL_SIZE_BESIDE_AUDIT = 8
const READ_BUDGET_SHARE_OF_MEMORY_LIMIT = 0.3
/** The default without tokens: this machine, by IPv4 and IPv6. */
const LOOPBACK = addresses(['127.0.0.1:9090', '[::1]:9090'])

const TOKEN_MEANINGS: Record<TokenVariable, string> = {
  BROKER_TOKEN_READ:
    'Token with the scope `read`, or two tokens separated by a comma. Any token turns authentication on.',
  BROKER_TOKEN_INGEST: 'Token with the scopes `ingest` and `read`.',
  BROKER_TOKEN_SUPPLYCHAIN: 'Token with the scopes `supplychain` and `read`.',
  BROKER_TOKEN_ADMIN: 'Token with all scopes; the only one that may record an export of a profile.',
  BROKER_TOKEN_CATALOG: 'Opens nothing: this broker has no routes of that scope. It must differ from all other tokens.',
  BROKER_AUTH_TOKEN: 'Shared token of older installations: `read` and `ingest`.',
}

/** The parsed environment; keys carry their units. Contains secrets: print `redacted(config)` instead. */
export interface Config extends Settings {
  readonly tokens: readonly ConfiguredToken<TokenVariable>[]
  readonly consoleEnabled: boolean
  /** Files of these tokens, which are read again while the broker runs. */
  readonly tokenFiles: readonly TokenFiles<TokenVariable>[]
  /**
   * Whether the API serves this machine only. It then listens on all addresses of `listen`, else on the first usable
   * one.
   */
  readonly isLoopbackOnly: boolean
  /** The external database; null for the embedded one. */
  readonly database: Address | null
  /** Values that are used differently than written, and likely mistakes; a sentence each. */
  readonly warnings: readonly string[]
}

/**
 * Reads the environment. Values are trimmed, blank is unset.
 * @throws ConfigError for every variable that is refused, all at once.
 */
export function loadConfig(env: NodeJS.ProcessEnv): Config {
  const errors: string[] = []
  const warnings: string[] = []
  const values = Object.fromEntries(
    Object.entries(rows).map(([key, row]) => [key, readRow(row, env, errors, warnings)]),
  ) as Settings
  const tokens = TOKEN_VARIABLES.flatMap((variable) => readToken(variable, env, errors, warnings))
  for (const name of unknownTokens(TOKEN_VARIABLES, env))
    warnings.push(`${name}: unknown variable; it grants nothing and does not turn authentication on`)
  if (tokens.some(({ variable }) => variable === 'BROKER_TOKEN_CATALOG')) warnings.push(NO_CATALOG)
  const isUrlInvalid = values.databaseUrl === null && trimmed(env, 'DATABASE_URL') !== ''
  const database = isUrlInvalid ? null : readDatabase(values.databaseUrl, env, errors, warnings)
  if (values.nodeEnv === 'production' && trimmed(env, 'DATABASE_URL') === '' && trimmed(env, 'PGHOST') === '')
    errors.push('DATABASE_URL or PGHOST is required in production')
  if (errors.length > 0) throw new ConfigError(errors.join('\n'))
  if (tokens.length > 0 && values.metricsWorkloadLabels === 'all') warnings.push(OPEN_WORKLOAD_LABELS)
  const isLoopbackOnly = tokens.length === 0 && trimmed(env, 'LISTEN_ADDR') === ''

  return {
    ...values,
    ...(isLoopbackOnly ? { listen: LOOPBACK } : {}),
    isLoopbackOnly,
    consoleEnabled: values.consoleEnabled ?? values.nodeEnv !== 'production',
    readMemoryBudgetMb: affordableBudgetMb(values, warnings),
    dbPoolMaxSize: sufficientPoolSize(values, warnings),
    tokens,
    tokenFiles: tokenFilesOf(TOKEN_VARIABLES, env),
    database,
    warnings,
  }
}

const NO_CATALOG = 'BROKER_TOKEN_CATALOG: this broker has no routes of the catalog of nodes; the token opens nothing'

const OPEN_WORKLOAD_LABELS =
  'METRICS_WORKLOAD_LABELS: tokens are set, but /metrics needs none and names namespaces and workloads; `admin` ' +
  'leaves these to the admin port'

function affordableBudgetMb({ memoryLimitMb, readMemoryBudgetMb }: Settings, warnings: string[]): number {
  const limitMb = Math.max(1, Math.floor(memoryLimitMb * READ_BUDGET_SHARE_OF_MEMORY_LIMIT))
  if (memoryLimitMb === 0 || readMemoryBudgetMb <= limitMb) return readMemoryBudgetMb
  warnings.push(
    `BROKER_READ_MEMORY_BUDGET_MB: ${readMemoryBudgetMb} is lowered to ${limitMb}, 30 % of BROKER_MEMORY_LIMIT_MB`,
  )
  return limitMb
}

function sufficientPoolSize(
  { dbPoolMaxSize, auditInflightPermits, evaluatorUrl }: Settings,
  warnings: string[],
): number {
  const size = auditInflightPermits + POOL_SIZE_BESIDE_AUDIT
  if (evaluatorUrl === null || dbPoolMaxSize >= size) return dbPoolMaxSize
  warnings.push(
    `DB_POOL_MAX_SIZE: ${dbPoolMaxSize} is raised to ${size}, ${POOL_SIZE_BESIDE_AUDIT} more than ` +
      'AUDIT_INFLIGHT_PERMITS',
  )
  return size
}

/** The configuration by variable, without passwords; for tokens the names of their variables. */
export function redacted(config: Config): Record<string, string | number | boolean | string[] | null> {
  const printed = Object.entries(rows).map(([key, row]) => [row.name, printable(config[key as keyof typeof rows])])
  return {
    ...Object.fromEntries(printed),
    database: config.database === null ? 'embedded' : printableDatabase(config.database),
    tokens: [...new Set(config.tokens.map((token) => token.source))],
  }
}

/** The documentation of all variables: a Markdown table, without a final newline. */
export function configTable(): string {
  const settings = Object.values(rows).flatMap((row: Row<unknown>) => [
    [row.name, row.type, row.shown, row.meaning],
    ...(row === rows.databaseUrl ? databaseVariables : []),
  ])
  return asTable([...settings, ...TOKEN_VARIABLES.flatMap((name) => tokenLines(name, TOKEN_MEANINGS[name]))])
}
