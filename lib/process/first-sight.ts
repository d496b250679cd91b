/** The last lines of a start on a terminal: where the broker is, a first question, where the data is, how to stop. */

export interface FirstSight {
  /** Address of the API as a URL. */
  readonly api: string
  readonly isLoopbackOnly: boolean
  /** Whether authentication is on. */
  readonly hasTokens: boolean
  /** Folder of the embedded database; null for one elsewhere. */
  readonly dataDir: string | null
}

export function firstSight({ api, isLoopbackOnly, hasTokens, dataDir }: FirstSight): string {
  // An address that stands for all of them is none to ask.
  const url = api.replace(/\/\/(\[::\]|0\.0\.0\.0):/, '//localhost:')
  const guard = hasTokens
    ? 'takes a token'
    : isLoopbackOnly
      ? 'no tokens, so for this machine alone'
      : 'no tokens: open to whoever reaches it'
  return [
    `  Broker  ${url}  (${guard})`,
    `  Try     curl ${url}/`,
    `  Data    ${dataDir === null ? 'in the database that is configured' : `${dataDir}  (a PostgreSQL of its own; kept between starts)`}`,
    '  Stop    Ctrl-C',
    '',
  ].join('\n')
}
