/** The environment variables that the chart sets, by program and value, read from its templates. */
import { readFileSync } from 'node:fs'
import { CHART } from './chart-values.ts'

export type Program = 'broker' | 'edge proxy' | 'controller' | 'supply-chain component'

/** The programs of the named templates. Jobs and the migration use a subset of the environment of the broker. */
const ENVIRONMENTS: Readonly<Record<string, Program>> = {
  programEnv: 'broker',
  databaseEnv: 'broker',
  settingsEnv: 'broker',
  tokensEnv: 'broker',
  brokerEnv: 'broker',
  frontendEnv: 'edge proxy',
  controllerEnv: 'controller',
  supplychainEnv: 'supply-chain component',
}

export interface Variable {
  readonly name: string
  readonly program: Program
  /** Paths of values that its content includes. */
  readonly values: readonly string[]
  /** Paths of values that decide whether it is set. */
  readonly conditions: readonly string[]
}

/** A variable that no value sets: the chart writes it, or a user may add it through the value `by`. */
export interface Fixed {
  readonly name: string
  readonly program: Program
  readonly by: 'the chart' | 'broker.env' | 'frontend.env'
  readonly reason: string
}

const plainTokens = (program: Program, by: Fixed['by'], names: readonly string[]): Fixed[] =>
  names.map((name) => ({
    name,
    program,
    by,
    reason: 'Tokens are mounted from `broker.auth.existingSecret` as files, so that a new one needs no restart.',
  }))

const timeout = (name: string): Fixed => ({
  name,
  program: 'edge proxy',
  by: 'frontend.env',
  reason:
    'The default fits the default of `database.statementTimeoutMs`; where that is raised above 45000, raise this as ' +
    'well.',
})

export const FIXED: readonly Fixed[] = [
  {
    name: 'NODE_ENV',
    program: 'broker',
    by: 'the chart',
    reason: '`production`: a broker without a database must not start an embedded one.',
  },
  {
    name: 'PGPASSWORD',
    program: 'broker',
    by: 'broker.env',
    reason: 'The password is mounted as a file, so that a new one needs no restart.',
  },
  {
    name: 'DATA_DIR',
    program: 'broker',
    by: 'broker.env',
    reason: 'Only for the embedded PostgreSQL, which the chart does not use.',
  },
  {
    name: 'COMPUTE_RETENTION_INTERVAL_SECS',
    program: 'broker',
    by: 'the chart',
    reason: 'Always 600.',
  },
  { name: 'CHART_VERSION', program: 'broker', by: 'the chart', reason: 'The version of the chart.' },
  {
    name: 'KUBE_VERSION',
    program: 'broker',
    by: 'the chart',
    reason: 'The version of the cluster at the install or upgrade.',
  },
  ...plainTokens('broker', 'broker.env', ['BROKER_TOKEN_READ', 'BROKER_TOKEN_INGEST', 'BROKER_AUTH_TOKEN']),
  {
    name: 'BROKER_TOKEN_ADMIN_FILE',
    program: 'broker',
    by: 'broker.env',
    reason: 'The key `admin` of `broker.auth.existingSecret` may be missing, but a mounted file may not.',
  },
  ...['BROKER_TOKEN_CATALOG', 'BROKER_TOKEN_CATALOG_FILE'].map((name) => ({
    name,
    program: 'broker' as const,
    by: 'broker.env' as const,
    reason: 'It opens nothing: the broker has no catalog of nodes.',
  })),
  {
    name: 'CORS_ORIGINS',
    program: 'broker',
    by: 'broker.env',
    reason: 'The UI is served from the origin of the edge proxy and needs none.',
  },
  {
    name: 'NODE_ENV',
    program: 'edge proxy',
    by: 'the chart',
    reason: '`production`: connections are accepted until the endpoint lists no longer have the pod.',
  },
  {
    name: 'LISTEN_ADDR',
    program: 'edge proxy',
    by: 'frontend.env',
    reason: 'The default uses the port of the Service, 8080, and detects IPv6.',
  },
  { name: 'BROKER_URL', program: 'edge proxy', by: 'the chart', reason: 'The Service of the broker of this release.' },
  {
    name: 'UPSTREAM_CONNECT_TIMEOUT_MS',
    program: 'edge proxy',
    by: 'frontend.env',
    reason: 'The default is long for a connection within a cluster.',
  },
  timeout('UPSTREAM_FIRST_BYTE_TIMEOUT_MS'),
  timeout('UPSTREAM_IDLE_TIMEOUT_MS'),
  ...plainTokens('edge proxy', 'frontend.env', ['BROKER_TOKEN_READ', 'BROKER_AUTH_TOKEN']),
]

const valuesIn = (text: string): string[] => [...text.matchAll(/\.Values\.((?:\w+\.)*\w+)/g)].map(([, path]) => path!)

/** The named templates of a file, by name. */
function definitions(text: string): Map<string, string> {
  const parts = text.split(/^\{\{-? define "telemetry-broker\.(\w+)" -?\}\}$/m).slice(1)
  return new Map(parts.flatMap((name, at) => (at % 2 === 0 ? [[name, parts[at + 1]!] as const] : [])))
}

/**
 * The variables of all environments in a file of templates. A variable in two environments of a program is listed
 * twice.
 */
export function variablesOf(text: string): Variable[] {
  const defined = definitions(text)
  return [...defined].flatMap(([name, body]) => {
    const program = ENVIRONMENTS[name]
    return program === undefined ? [] : variablesIn(body, program, defined)
  })
}

function variablesIn(body: string, program: Program, defined: ReadonlyMap<string, string>): Variable[] {
  const named = new Map<string, string>()
  for (const [, name, path] of body.matchAll(/\{\{-? \$(\w+) := \.Values\.((?:\w+\.)*\w+)/g)) named.set(name!, path!)
  const found: { name: string; values: string[]; conditions: string[] }[] = []
  /** The values in the conditions of each open `if`, `with` and `range`. */
  const open: string[][] = []
  for (const line of body.split('\n')) {
    const [, word, rest] = /^\{\{-? (if|with|range|else|end)\b(.*)\}\}$/.exec(line) ?? []
    if (word === 'end') open.pop()
    // An `else` depends on the same conditions as its `if`.
    else if (word === 'else') open[open.length - 1]!.push(...valuesIn(rest!))
    else if (word !== undefined) {
      const included = [...rest!.matchAll(/include "telemetry-broker\.(\w+)"/g)].map(
        ([, name]) => defined.get(name!) ?? '',
      )
      open.push([rest!, ...included].flatMap(valuesIn))
    }
    const [, name] = /^- name: (\w+)$/.exec(line) ?? []
    if (name !== undefined) found.push({ name, values: [], conditions: open.flat() })
    else if (line.startsWith('  ')) {
      const aliases = [...line.matchAll(/\{\{ \$(\w+) \}\}/g)].flatMap(([, alias]) => named.get(alias!) ?? [])
      found.at(-1)?.values.push(...valuesIn(line), ...aliases)
    }
  }
  return found.map((one) => ({ ...one, program }))
}

export const chartVariables = (): Variable[] =>
  variablesOf(readFileSync(new URL('templates/_environment.tpl', CHART), 'utf8'))
