/** Package URLs as they are compared (docs/contract.md#search). `purl_text` and its kin in SQL do the same. */

/** In lower case, letters from A to Z only, as the database does. */
export const lowerAscii = (text: string): string => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

/** The characters that packages have in their names and versions. */
const ESCAPED: Readonly<Record<string, string>> = { '%40': '@', '%2b': '+', '%3a': ':', '%7e': '~' }

const unescaped = (purl: string) => purl.replace(/%(?:40|2b|3a|7e)/gi, (one) => ESCAPED[one.toLowerCase()]!)

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
  const whole = unescaped(asked)
  const sent = /^[^?#]*/.exec(whole)![0]
  // The first `@`; after a slash it begins a scope.
  const [, base = sent, version = null] = /^(.*?[^/])@(.*)$/s.exec(sent) ?? []
  const named = lowerAscii(base)
  return { text: lowerAscii(whole), plain: lowerAscii(sent), base: named, version, names: namesOf(named) }
}

function namesOf(base: string): string[] {
  const [, ...path] = base.replace(/^pkg:\/*/, '').split('/')
  const name = path.at(-1)
  if (name === undefined || name === '') return []
  const group = path.slice(0, -1).join('/')
  return group === '' ? [name] : [name, `${group}/${name}`, `${group}:${name}`]
}
