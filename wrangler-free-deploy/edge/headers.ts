/** The header fields that are forwarded, in either direction. Hop-by-hop fields end here (RFC 9110, 7.6.1). */

const HOP_BY_HOP = ['connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade']
/** Fields with this prefix end here, too: Proxy-Authorization, Proxy-Authenticate, Proxy-Connection and future ones. */
const PROXY = 'proxy-'

/**
 * Request fields that end here: the client's credentials are for this proxy, which sends its own; `Host`, length and id
 * are set anew; `Expect` was answered here.
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
/**
 * Answer fields that end here. The broker allows every origin to read; with the token that the proxy adds, that would
 * open it to any web page.
 */
const ENDS_HERE_TOO = new Set([...HOP_BY_HOP, 'x-request-id'])
const CORS = 'access-control-'

/**
 * The forwarded header fields of a request, names and values in turn, unchanged. `connection` is its field of that
 * name.
 */
export function requestFields(raw: readonly string[], connection: string | undefined): string[] {
  return fields(raw, connection, (name) => ENDS_HERE.has(name))
}

/** The forwarded header fields of an answer. */
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

/** Fields that `Connection` lists are hop-by-hop, too. */
function namedBy(connection: string | undefined): ReadonlySet<string> {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return NONE
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  )
}
