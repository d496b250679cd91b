/** Package URLs as they are compared (docs/contract.md#search). `purl_text` and its kin in SQL do the same. */

/** In lower case, letters from A to Z only, as the database does. */
export const lowerAscii = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

const UNESCAPED: readonly (readonly [string, string])[] = [
  ['%40', '@'],
  ['%2b', '+'],
  ['%3a', ':'],
  ['%7e', '~'],
]

const purlText = (purl: string) =>
  UNESCAPED.reduce((text, [escaped, character]) => text.replaceAll(escaped, character), lowerAscii(purl))

/** A package URL that was asked for. */
export interface Purl {
  /** The whole URL, in the form that is compared. */
  readonly text: string
  /** Without qualifiers and subpath. */
  readonly plain: string
  /** Without the version, too. */
  readonly base: string
  readonly version: string | null
  /** Names that scanners give the package, for entries without a URL. */
  readonly names: readonly string[]
}

export const isPurl = (text: string): boolean => /^pkg:/i.test(text)

/** Reads a package URL. Any text that begins with `pkg:` is one, even the beginning of a URL. */
export function readPurl(asked: string): Purl {
  const text = purlText(asked)
  const plain = text.split('#')[0]!.split('?')[0]!
  const isVersioned = plain.split('/').at(-1)!.indexOf('@') > 0
  const base = isVersioned ? plain.slice(0, plain.lastIndexOf('@')) : plain
  // The version is compared with a column as it was sent.
  const version = isVersioned ? asked.split('#')[0]!.split('?')[0]!.split(/@|%40/i).at(-1)! : null
  return { text, plain, base, version, names: namesOf(base) }
}

function namesOf(base: string): string[] {
  const [, ...path] = base.replace(/^pkg:\/*/, '').split('/')
  const name = path.at(-1)
  if (name === undefined || name === '') return []
  const group = path.slice(0, -1).join('/')
  return group === '' ? [name] : [name, `${group}/${name}`, `${group}:${name}`]
}
