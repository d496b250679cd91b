/** The last lines of a start on a terminal: addresses, a first command, data folder, how to stop. */
import { CONSOLE_PATH } from '../console/answer.ts'

export interface FirstSight {
  /** Address of the API as a URL. */
  readonly api: string
  readonly isLoopbackOnly: boolean
  /** Whether authentication is on. */
  readonly hasTokens: boolean
  readonly hasConsole: boolean
  /** Folder of the embedded database; null for an external one. */
  readonly dataDir: string | null
}

export function firstSight({ api, isLoopbackOnly, hasTokens, hasConsole, dataDir }: FirstSight): string {
  // A wildcard address cannot be called.
  const url = api.replace(/\/\/(\[::\]|0\.0\.0\.0):/, '//localhost:')
  const guard = hasTokens
    ? 'takes a token'
    : isLoopbackOnly
      ? 'no tokens, so for this machine only'
      : 'no tokens: open to everybody who reaches it'
  const data =
    dataDir === null ? 'in the configured database' : `${dataDir}  (embedded PostgreSQL; kept between starts)`
  return [
    `  Broker  ${url}  (${guard})`,
    ...(hasConsole ? [`  Console ${url}${CONSOLE_PATH}/`] : []),
    `  Try     curl ${url}/`,
    `  Data    ${data}`,
    '  Stop    Ctrl-C',
    '',
  ].join('\n')
}
