/**
 * YAML that parsers of versions 1.1 and 1.2 read alike (interop-supply-chain, section 10, lesson 15). Values come from strangers: none may start
 * a line, become a comment or be of another type.
 */
import { DEFAULT_SCALAR_STYLE_RULES, dump, SCALAR_STYLE, type ScalarStyleRule } from 'js-yaml'

/** An object of Kubernetes. */
export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: object
  readonly spec: object
}

/** What of a list is written at once: so many members, or one more than come to so many characters of JSON. */
const PART = 50
const PART_CHARS = 64 * 1024
const STEP = '  '
const STRING = 'tag:yaml.org,2002:str'

/** What a block may hold, of which every line is what it is: printable, and at most one line feed at the end. */
const BLOCK = /^[!-~][ -~\n]*(?<!\n\n)$/

const POWER = /^[eE][-+]?[0-9]/

/**
 * Some parsers take `._`, `0x_` and `e1` for numbers: what begins with no letter, or could be the power of a number, never stands without quotes.
 * The writer knows all other words.
 */
const quoteUnlikeWords: ScalarStyleRule = (layout) => {
  const { node, isKey, style } = layout
  if (style !== SCALAR_STYLE.PLAIN || isKey || node.tag !== STRING) return
  if (node.value.includes('\n')) {
    if (!BLOCK.test(node.value)) layout.style = SCALAR_STYLE.DOUBLE_QUOTED
  } else if (!/^[A-Za-z]/.test(node.value) || POWER.test(node.value)) layout.style = SCALAR_STYLE.SINGLE_QUOTED
}

const { doubleQuoteForInvisibles, doubleQuoteWhitespaceOnly, ...others } = DEFAULT_SCALAR_STYLE_RULES
const scalarStyleRules = [
  doubleQuoteForInvisibles,
  doubleQuoteWhitespaceOnly,
  quoteUnlikeWords,
  ...Object.values(others),
]

const written = (value: unknown): string => dump(value, { lineWidth: -1, noRefs: true, scalarStyleRules })

/** By as many steps more. No line but ours ends in what JavaScript alone takes for the end of a line. */
const indented = (text: string, by: string): string => `${by}${text.slice(0, -1).replace(/\n(?=[^\n])/g, `\n${by}`)}\n`

/** The text of an object, in parts that take moments each. */
export function* yamlOf({ apiVersion, kind, metadata, spec }: Manifest): Generator<string> {
  if (isShort(spec)) {
    yield written({ apiVersion, kind, metadata, spec })
    return
  }
  yield written({ apiVersion, kind, metadata })
  yield 'spec:\n'
  for (const [name, value] of Object.entries(spec)) {
    if (!Array.isArray(value) || value.length === 0) {
      yield indented(written({ [name]: value }), STEP)
      continue
    }
    yield `${STEP}${name}:\n`
    for (const part of partsOf(value)) yield indented(written(part), STEP + STEP)
  }
}

const isShort = (spec: object): boolean =>
  !Object.values(spec).some((value) => Array.isArray(value) && value.length > PART) &&
  JSON.stringify(spec).length <= PART_CHARS

function* partsOf(list: readonly unknown[]): Generator<unknown[]> {
  let part: unknown[] = []
  let chars = 0
  for (const member of list) {
    part.push(member)
    chars += JSON.stringify(member).length
    if (part.length < PART && chars < PART_CHARS) continue
    yield part
    part = []
    chars = 0
  }
  if (part.length > 0) yield part
}

/**
 * What editors and parsers may take for the end of a line, or show as nothing or as something else: controls, formats such as those of direction,
 * separators, halves of a pair, what is no character, and letters that are blank.
 */
const UNSHOWN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufffe\uffff]/gu

/** Text as one line shows it, whatever it holds. */
export const oneLine = (text: string): string => text.replace(UNSHOWN, ' ')

/**
 * A value in a comment: in quotes where it could be read as more than the value, once it is one line, or as another: letters that look like those
 * of ASCII are no letters there.
 */
export function quoted(value: string): string {
  const shown = oneLine(value)
  if (/^[!-~]+$/.test(shown) && !/["()]/.test(shown)) return shown
  return JSON.stringify(shown).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A comment of one line. */
export const comment = (text: string): string => `# ${oneLine(text)}\n`
