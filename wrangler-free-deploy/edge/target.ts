/**
 * Decides which requests go on to the broker, on the raw request target before anything is decoded. Only targets that
 * all parsers read alike pass: a path of plain segments, and a query.
 */
import { HttpError } from '../../lib/errors.ts'

/** The request target for the broker. */
export interface Target {
  /** Without the base path. */
  readonly path: string
  /** The query with its `?`, byte for byte; empty if there is none. */
  readonly search: string
}

/** Characters of a segment (RFC 3986, 3.3) but for `%`. */
const PATH = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,;=:@]+)+$/
/** `..` anywhere, and `.` as a segment, which URL parsers remove. */
const DOTS = /\.\.|\/\.(?:\/|$)/
/** Visible ASCII without `#` and `\`; browsers send more of it than RFC 3986 allows. */
const SEARCH = /^\?[\x21\x22\x24-\x5b\x5d-\x7e]*$/
/** The one POST that reads: a profile with staged edits as a manifest. */
const EXPORT = /^\/seccomp\/profiles\/[^/]+\/[^/]+\/[^/]+\/export$/

export const isPlainPath = (path: string): boolean => PATH.test(path) && !DOTS.test(path)

/**
 * Reads the target of a request line.
 * @throws HttpError 400 that names the rule
 */
export function readTarget(raw: string, basePath: string): Target {
  const mark = raw.indexOf('?')
  const path = mark < 0 ? raw : raw.slice(0, mark)
  const search = mark < 0 ? '' : raw.slice(mark)
  if (path !== '/' && !isPlainPath(path)) throw refused(faultOf(path))
  if (search !== '' && !SEARCH.test(search))
    throw refused('the query may hold visible ASCII characters except # and \\ only')
  if (basePath === '' || !path.startsWith(basePath)) return { path, search }
  if (path.length === basePath.length) return { path: '/', search }
  return path[basePath.length] === '/' ? { path: path.slice(basePath.length), search } : { path, search }
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
const READING_OR_EXPORT = [...READING, 'POST']

/** The methods that are forwarded for a path. */
export const methodsOf = (path: string): readonly string[] => (EXPORT.test(path) ? READING_OR_EXPORT : READING)
