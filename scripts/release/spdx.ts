/** SPDX licence expressions (SPDX 2.3, annex D), as far as packages use them. */

/** The text is no SPDX expression. */
export class NoExpression extends Error {
  override readonly name = 'NoExpression'
}

const WORDS = /\(|\)|[A-Za-z0-9][A-Za-z0-9.:+-]*/y

/** Splits an expression into words; throws NoExpression. */
function wordsOf(expression: string): string[] {
  const words: string[] = []
  for (let at = 0; at < expression.length; ) {
    WORDS.lastIndex = at
    const [word] = WORDS.exec(expression) ?? []
    if (word === undefined && expression[at] !== ' ') throw new NoExpression(expression)
    if (word !== undefined) words.push(word)
    at += word?.length ?? 1
  }
  return words
}

/**
 * Whether the licence permits use if these are allowed: one side of `OR`, both sides of `AND`, which binds tighter. A
 * licence `WITH` an exception is allowed only in this combination, and `X+` only as `X+`.
 * @throws NoExpression
 */
export function isAllowed(expression: string, allowed: ReadonlySet<string>): boolean {
  const words = wordsOf(expression)
  const isNext = (word: string) => words[0] === word && words.shift() !== undefined
  const name = () => {
    const word = words.shift()
    if (word === undefined || /^([()]|AND|OR|WITH)$/.test(word)) throw new NoExpression(expression)
    return word
  }
  const either = (): boolean => {
    let result = both()
    while (isNext('OR')) result = both() || result
    return result
  }
  const both = (): boolean => {
    let result = one()
    while (isNext('AND')) result = one() && result
    return result
  }
  const one = (): boolean => {
    if (isNext('(')) {
      const result = either()
      if (!isNext(')')) throw new NoExpression(expression)
      return result
    }
    const license = name()
    return allowed.has(isNext('WITH') ? `${license} WITH ${name()}` : license)
  }
  const result = either()
  if (words.length > 0) throw new NoExpression(expression)
  return result
}
