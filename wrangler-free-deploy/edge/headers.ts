/** Which header fields go on, in either direction. What is about one connection ends here (RFC 9110, 7.6.1). */

const HOP_BY_HOP = ['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade']
/** Beside these ends whatever begins so: Proxy-Authorization, Proxy-Authenticate, Proxy-Connection, and what may come. */
const PROXY = 'proxy-'

/**
 * The browser's credentials are for this proxy, which has its own; `Host`, length and id are told anew; what `Expect` expects was answered
 * here.
 */
const ENDS_HERE = new Set([
  ...HOP_BY_HOP,
  'authorization',
  'cookie',
  'host',
  'content-length',
  'expect',
  'x-request-id',
])
/** The same of an answer. The broker lets every origin read; with a token added for everybody that would open it to every page there is. */
const ENDS_HERE_TOO = new Set([...HOP_BY_HOP, 'x-request-id'])
const CORS = 'access-control-'

/** The header fields of a request that go on, names and values in turn, as they came. `connection` is its field of that name. */
export function requestFields(raw: readonly string[], connection: string | undefined): string[] {
  return fields(raw, connection, (name) => ENDS_HERE.has(name))
}

/** The same of an answer. */
export function answerFields(raw: readonly string[], connection: string | undefined): string[] {
  return fields(raw, connection, (name) => ENDS_HERE_TOO.has(name) || name.startsWith(CORS))
}

function fields(raw: readonly string[], connection: string | undefined, endsHere: (name: string) => boolean): string[] {
  const named = namedBy(connection)
  const kept: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    if (endsHere(name) || name.startsWith(PROXY) || named.has(name)) continue
    kept.push(raw[i]!, raw[i + 1]!)
  }
  return kept
}

const NONE: ReadonlySet<string> = new Set()

/** What `Connection` names is about this connection, too. */
function namedBy(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return NONE
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  )
}
