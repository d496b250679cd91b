/** The environment of the edge proxy, read once, with the rules of the broker's own (`lib/config/variables.ts`). */
import { z } from 'zod'
import {
  type ConfiguredToken,
  readToken,
  type TokenFiles,
  tokenFilesOf,
  tokenLines,
} from '../../lib/config/token-variables.ts'
import {
  address,
  asTable,
  flag,
  hostNames,
  printable,
  type Row,
  readRow,
  whole,
  word,
} from '../../lib/config/variables.ts'
import { CONSOLE_PATH } from '../../lib/console/answer.ts'
import { ConfigError } from '../../lib/errors.ts'
import { LOG_LEVELS } from '../../lib/observability/log.ts'
import { isPlainPath } from './target.ts'

const tokenVariables = ['BROKER_TOKEN_READ', 'BROKER_AUTH_TOKEN'] as const
type TokenVariable = (typeof tokenVariables)[number]

/**
 * The server closes an idle socket after 120 s (`lib/http/server/listen.ts`): a waiting client must get its answer
 * before.
 */
const waitMs = [1, 110_000] as const

const rows = {
  nodeEnv: word(
    'NODE_ENV',
    ['development', 'production', 'test'],
    'development',
    '`production`: after SIGTERM connections are accepted for 3 s more, until every list of endpoints has lost them.',
  ),
  listen: address(
    'LISTEN_ADDR',
    ['[::]:8080', '0.0.0.0:8080'],
    'Address that is proxied, and of `/healthz`. The default takes the second where the host has no IPv6.',
  ),
  adminListen: address('ADMIN_ADDR', ['127.0.0.1:8081'], 'Address of `/livez`, `/readyz` and `/metrics`.'),
  allowedHosts: hostNames(
    'ALLOWED_HOSTS',
    'Names by which browsers may ask for this proxy, beside those of the machine itself (`localhost`, `127.0.0.1`, `[::1]`); others get 421.',
  ),
  brokerUrl: brokerUrl('BROKER_URL', 'The broker, without a path: what is asked here is asked there.'),
  basePath: basePath(
    'BASE_PATH',
    'A path that begins with it is forwarded without it; `/` for none. Others are forwarded as they are.',
  ),
  consoleEnabled: flag(
    'CONSOLE',
    false,
    'Whether the console is served at `/` and `/console/`. `POST /networkpolicy/try` is then forwarded, too.',
  ),
  connectTimeoutMs: whole('UPSTREAM_CONNECT_TIMEOUT_MS', 5_000, waitMs, 'Milliseconds for connecting to the broker.'),
  firstByteTimeoutMs: whole(
    'UPSTREAM_FIRST_BYTE_TIMEOUT_MS',
    45_000,
    waitMs,
    "Milliseconds from a question to the first byte of its answer; more than the broker's `DB_STATEMENT_TIMEOUT_MS`.",
  ),
  idleTimeoutMs: whole(
    'UPSTREAM_IDLE_TIMEOUT_MS',
    45_000,
    waitMs,
    'Milliseconds between two pieces of an answer, the time in which its reader makes it wait left out. A long list has a statement between.',
  ),
  logLevel: word('LOG_LEVEL', LOG_LEVELS, 'info', 'Lowest level that is logged.'),
  allowSharedToken: flag(
    'ALLOW_SHARED_TOKEN',
    false,
    'Whether `BROKER_AUTH_TOKEN`, with which one can also write, may be used here.',
  ),
} satisfies Record<string, Row<unknown>>

const tokenMeanings: Record<TokenVariable, string> = {
  BROKER_TOKEN_READ: 'Read token that is added to every request; without one no `Authorization` is.',
  BROKER_AUTH_TOKEN: 'Shared token of older installations, instead of it; refused without `ALLOW_SHARED_TOKEN=true`.',
}

type Settings = { readonly [K in keyof typeof rows]: (typeof rows)[K] extends Row<infer T> ? T : never }

/** The parsed environment; keys carry their units. It holds a secret: print `redacted(config)`. */
export interface EdgeConfig extends Settings {
  /** Scheme, host and port. */
  readonly brokerUrl: string
  readonly token: ConfiguredToken<TokenVariable> | null
  /** The token file, which is read again while the process runs. */
  readonly tokenFiles: readonly TokenFiles<TokenVariable>[]
  /** Values that were adjusted, one sentence each. */
  readonly warnings: readonly string[]
}

/**
 * Reads the environment. Values are trimmed, blank is unset.
 * @throws ConfigError for every variable that is refused, all at once.
 */
export function loadConfig(env: NodeJS.ProcessEnv): EdgeConfig {
  const errors: string[] = []
  const warnings: string[] = []
  const values = Object.fromEntries(
    Object.entries(rows).map(([key, row]) => [key, readRow(row, env, errors, warnings)]),
  ) as Settings
  const { brokerUrl } = values
  if (brokerUrl === null && !errors.some((error) => error.startsWith(rows.brokerUrl.name)))
    errors.push(`${rows.brokerUrl.name} is required`)
  if (values.consoleEnabled && `${values.basePath}/`.startsWith(`${CONSOLE_PATH}/`))
    errors.push(`${rows.basePath.name}: the console has ${CONSOLE_PATH}: choose another path, or CONSOLE=false`)
  const token = readOneToken(values, env, errors, warnings)
  if (errors.length > 0) throw new ConfigError(errors.join('\n'))
  return { ...values, brokerUrl: brokerUrl!, token, tokenFiles: tokenFilesOf(tokenVariables, env), warnings }
}

function readOneToken({ allowSharedToken }: Settings, env: NodeJS.ProcessEnv, errors: string[], warnings: string[]) {
  // If the variable has two tokens, the first is sent.
  const [one, other] = tokenVariables.flatMap((variable) => readToken(variable, env, errors, warnings).slice(0, 1))
  if (one === undefined) return null
  if (other !== undefined) errors.push(`${one.source} and ${other.source} are both set: keep one`)
  else if (one.variable === 'BROKER_AUTH_TOKEN' && !allowSharedToken)
    errors.push(
      `${one.source}: with the shared token one can also write, and this proxy gives it to everybody who reaches it: ` +
        'set BROKER_TOKEN_READ instead, or ALLOW_SHARED_TOKEN=true',
    )
  if (!/^[\x20-\x7e]+$/.test(one.value))
    errors.push(`${one.source}: no header can carry the token: it has characters outside printable ASCII`)
  return one
}

/** The configuration by variable, safe to print: instead of the token, the name of its variable. */
export function redacted(config: EdgeConfig): Record<string, string | number | boolean | null> {
  const printed = Object.entries(rows).map(([key, row]) => [row.name, printable(config[key as keyof typeof rows])])
  return { ...Object.fromEntries(printed), token: config.token?.source ?? null }
}

/** The table of README.md beside this file. Markdown, without a line end. */
export function configTable(): string {
  const settings = Object.values(rows).map(({ name, type, shown, meaning }: Row<unknown>) => [
    name,
    type,
    shown,
    meaning,
  ])
  return asTable([...settings, ...tokenVariables.flatMap((name) => tokenLines(name, tokenMeanings[name]))])
}

function brokerUrl(name: string, meaning: string) {
  const schema: z.ZodType<string | null, string> = z.string().transform((value, context) => {
    const url = /^https?:\/\//i.test(value) && URL.canParse(value) ? new URL(value) : null
    if (url !== null && `${url.origin}/` === url.href) return url.origin
    context.addIssue('not an origin')
    return null
  })
  return {
    name,
    type: 'http://host:port or https://host:port',
    fallback: null,
    shown: 'required',
    ifUnreadable: 'refused',
    meaning,
    schema,
  } as const
}

function basePath(name: string, meaning: string) {
  // `/` becomes the empty string, the prefix that is removed.
  const schema: z.ZodType<string, string> = z
    .string()
    .refine((value) => value === '/' || isPlainPath(value))
    .transform((value) => (value === '/' ? '' : value))
  return {
    name,
    type: '/segment/segment, or /',
    fallback: '/api',
    shown: '`/api`',
    ifUnreadable: 'refused',
    meaning,
    schema,
  } as const
}
