/**
 * Decides which requests go on to the broker, on the raw request target before anything is decoded. Only targets that
 * all parsers read alike pass: a path of plain segments, and a query.
 */
import { HttpError } from '../../lib/errors.ts'
import { MAX_CORE_BODY_BYTES, MAX_POLICIES_BYTES } from '../../lib/limits/limits.ts'

/** The request target for the broker or for the console. */
export interface Target {
  /** Without the base path. */
  readonly path: string
  /** The query with its `?`, byte for byte; empty if there is none. */
  readonly search: string
  /** Whether the console answers it, and not the broker. */
  readonly isConsole: boolean
}

/** Characters of a segment (RFC 3986, 3.3) but for `%`. */
const PATH = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,;=:@]+)+$/
/** `..` anywhere, and `.` as a segment, which URL parsers remove. */
const DOTS = /\.\.|\/\.(?:\/|$)/
/** Visible ASCII without `#` and `\`; browsers send more of it than RFC 3986 allows. */
const SEARCH = /^\?[\x21\x22\x24-\x5b\x5d-\x7e]*$/
/**
 * A page or a file of the console: `%` and a slash at the end may stand there, since it is only looked up in a table of
 * names and never forwarded.
 */
const CONSOLE = /^\/console(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})+)*\/?$/
/** The POST that only reads: a profile with staged edits as a manifest. */
const EXPORT = /^\/seccomp\/profiles\/[^/]+\/[^/]+\/[^/]+\/export$/

/** The same of the console: policies are judged and not stored. */
const TRY = '/networkpolicy/try'

export const isPlainPath = (path: string): boolean => PATH.test(path) && !DOTS.test(path)
const isConsolePath = (path: string) => path === '/' || (CONSOLE.test(path) && !DOTS.test(path))

/**
 * Reads the target of a request line. The console, if there is one, also answers `/`.
 * @throws HttpError 400 that names the rule
 */
export function readTarget(raw: string, basePath: string, hasConsole = false): Target {
  const mark = raw.indexOf('?')
  const path = mark < 0 ? raw : raw.slice(0, mark)
  const search = mark < 0 ? '' : raw.slice(mark)
  const isConsole = hasConsole && isConsolePath(path)
  if (!isConsole && path !== '/' && !isPlainPath(path)) throw refused(faultOf(path))
  if (search !== '' && !SEARCH.test(search))
    throw refused('the query may hold visible ASCII characters except # and \\ only')
  return { path: isConsole ? path : withoutBase(path, basePath), search, isConsole }
}

function withoutBase(path: string, basePath: string): string {
  if (basePath === '' || !path.startsWith(basePath)) return path
  if (path.length === basePath.length) return '/'
  return path[basePath.length] === '/' ? path.slice(basePath.length) : path
}

const refused = (rule: string) => new HttpError(400, `request target: ${rule}`)

function faultOf(path: string): string {
  if (!path.startsWith('/')) return 'expected a path that begins with /'
  if (path.includes('%')) return 'the path may not hold %'
  if (path.includes('..')) return 'the path may not hold ..'
  if (path.endsWith('/') || path.includes('//')) return 'the path may not have empty segments'
  if (DOTS.test(path)) return 'the path may not have . as a segment'
  return "a segment of the path may hold letters, digits and -._~!$&'()*+,;=:@ only"
}

const READING = ['GET', 'HEAD']
const READING_OR_POST = [...READING, 'POST']

/** The methods that are forwarded for a path. */
export const methodsOf = (path: string, hasConsole = false): readonly string[] =>
  EXPORT.test(path) || (hasConsole && path === TRY) ? READING_OR_POST : READING

/** The longest body of a POST to this path, as in the broker. */
export const maxBodyBytesOf = (path: string): number => (path === TRY ? MAX_POLICIES_BYTES : MAX_CORE_BODY_BYTES)
