/** Counts in words: `1 image`, `1,204 images`. */

const number = new Intl.NumberFormat()

export const numberText = (count: number): string => number.format(count)

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${number.format(count)} ${count === 1 ? one : many}`
}
