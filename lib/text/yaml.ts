/**
 * Writes YAML that parsers of versions 1.1 and 1.2 read alike. Values come from untrusted clients: none may start a
 * line, become a comment or change its type.
 */
import { DEFAULT_SCALAR_STYLE_RULES, dump, SCALAR_STYLE, type ScalarStyleRule } from 'js-yaml'
import { oneLine } from './one-line.ts'

/** A Kubernetes object. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: object
  readonly spec: object
}

/** Members of a list written at once; a part also ends after this many characters of JSON. */
const PART_MEMBERS = 50
const PART_CHARS = 64 * 1024
const INDENT = '  '
const STRING = 'tag:yaml.org,2002:str'

/** Text that may be a literal block: printable ASCII, at most one line feed at its end. */
const BLOCK = /^[!-~][ -~\n]*(?<!\n\n)$/

const POWER = /^[eE][-+]?[0-9]/

/**
 * Some parsers read `._`, `0x_` and `e1` as numbers. Texts that do not begin with a letter, or that look like an
 * exponent, are therefore quoted. js-yaml quotes all other special words itself.
 */
const quoteLikelyNumbers: ScalarStyleRule = (layout) => {
  const { node, style } = layout
  if (style !== SCALAR_STYLE.PLAIN || node.tag !== STRING) return
  if (node.value.includes('\n')) {
    if (!BLOCK.test(node.value)) layout.style = SCALAR_STYLE.DOUBLE_QUOTED
  } else if (!/^[A-Za-z]/.test(node.value) || POWER.test(node.value)) layout.style = SCALAR_STYLE.SINGLE_QUOTED
}

const { doubleQuoteForInvisibles, doubleQuoteWhitespaceOnly, ...others } = DEFAULT_SCALAR_STYLE_RULES
const scalarStyleRules = [
  doubleQuoteForInvisibles,
  doubleQuoteWhitespaceOnly,
  quoteLikelyNumbers,
  ...Object.values(others),
]

const toYaml = (value: unknown): string => dump(value, { lineWidth: -1, noRefs: true, scalarStyleRules })

/** Indents all lines but empty ones. */
const indented = (text: string, by: string): string => `${by}${text.slice(0, -1).replace(/\n(?=[^\n])/g, `\n${by}`)}\n`

/** Yields the text of an object in parts, so that the caller can yield to the event loop between them. */
export function* yamlOf({ apiVersion, kind, metadata, spec }: Manifest): Generator<string> {
  if (isShort(spec)) {
    yield toYaml({ apiVersion, kind, metadata, spec })
    return
  }
  yield toYaml({ apiVersion, kind, metadata })
  yield 'spec:\n'
  for (const [name, value] of Object.entries(spec)) {
    if (!Array.isArray(value) || value.length === 0) {
      yield indented(toYaml({ [name]: value }), INDENT)
      continue
    }
    yield `${INDENT}${name}:\n`
    for (const part of partsOf(value)) yield indented(toYaml(part), INDENT + INDENT)
  }
}

const isShort = (spec: object): boolean =>
  !Object.values(spec).some((value) => Array.isArray(value) && value.length > PART_MEMBERS) &&
  JSON.stringify(spec).length <= PART_CHARS

function* partsOf(list: readonly unknown[]): Generator<unknown[]> {
  let part: unknown[] = []
  let chars = 0
  for (const member of list) {
    part.push(member)
    chars += JSON.stringify(member).length
    if (part.length < PART_MEMBERS && chars < PART_CHARS) continue
    yield part
    part = []
    chars = 0
  }
  if (part.length > 0) yield part
}

/**
 * A value inside a comment, on one line. Quoted if a reader could confuse where it ends; non-ASCII characters, which
 * may look like ASCII letters, are escaped.
 */
export function quoted(value: string): string {
  const shown = oneLine(value)
  if (/^[!-~]+$/.test(shown) && !/["()]/.test(shown)) return shown
  return JSON.stringify(shown).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A comment line. */
export const comment = (text: string): string => `# ${oneLine(text)}\n`
