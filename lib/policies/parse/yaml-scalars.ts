/**
 * Plain scalars as kubectl reads them: by the rules of sigs.k8s.io/yaml, which are nearly those of YAML 1.1. So `yes`
 * is no string, and a label with that value is refused here as there.
 */

const CONSTANTS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...['y', 'yes', 'true', 'on'].flatMap((word) => inCases(word).map((one) => [one, true] as const)),
  ...['n', 'no', 'false', 'off'].flatMap((word) => inCases(word).map((one) => [one, false] as const)),
  ...['.nan', '.NaN', '.NAN'].map((word) => [word, Number.NaN] as const),
  ...['.inf', '+.inf', '-.inf'].flatMap((word) =>
    [word, word.replace('inf', 'Inf'), word.replace('inf', 'INF')].map(
      (one) => [one, word.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY] as const,
    ),
  ),
])

function inCases(word: string): string[] {
  return [word, `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`, word.toUpperCase()]
}

const NUMBER_START = /^[-+.0-9]/
const BASES = [
  { form: /^[-+]?0[xX][0-9a-fA-F]+$/, digits: 2, base: 16 },
  { form: /^[-+]?0[bB][01]+$/, digits: 2, base: 2 },
  { form: /^[-+]?0[oO][0-7]+$/, digits: 2, base: 8 },
  { form: /^[-+]?0[0-7]+$/, digits: 1, base: 8 },
]
const DECIMAL = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/

/** Longer texts are no numbers that a policy could hold. */
const MAX_NUMBER_CHARS = 400

/** Null, a boolean, a number, or the text itself. */
export function resolvePlain(text: string): unknown {
  const constant = CONSTANTS.get(text)
  if (constant !== undefined) return constant
  if (!NUMBER_START.test(text) || text.length > MAX_NUMBER_CHARS) return text
  const plain = text.replaceAll('_', '')
  for (const { form, digits, base } of BASES) {
    if (!form.test(plain)) continue
    const unsigned = plain.replace(/^[-+]/, '')
    return Number.parseInt(unsigned.slice(digits), base) * (plain.startsWith('-') ? -1 : 1)
  }
  return DECIMAL.test(plain) ? Number(plain) : text
}
