/** The values of filters: as parameters of the API, and as flags of `ctb`. */

/** `!` in front of a value excludes it, where the field allows that. */
export const isExclusion = (value: string): boolean => value.startsWith('!')

/**
 * The filter of the address under the names of the API. Lists of values are joined with commas. Routes of lists cannot
 * exclude values, and would look for the text with its `!`: the filter bar says that such a value is ignored.
 */
export function listFilter(
  query: URLSearchParams,
  fields: readonly { readonly name: string }[],
): Readonly<Record<string, string>> {
  const given = fields.map(({ name }) => {
    const values = query.getAll(name).filter((value) => !isExclusion(value))
    return [name, values.join(',')] as const
  })
  return Object.fromEntries(given.filter(([, value]) => value !== ''))
}

/** The same filter as flags of `ctb`. */
export function flagsOf(filter: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(filter).flatMap(([name, value]) =>
    name === 'namespace' ? ['-n', value] : [`--${name.replaceAll('_', '-')}`, value],
  )
}
