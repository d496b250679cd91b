/** The same flows by `ctb`. */

export interface Shown {
  /** Parameters of the API, filters and window. */
  readonly query: object
  readonly isLive: boolean
}

/** Arguments of `ctb flows`: its flags are the parameters with hyphens. A follow takes no end. */
export function flowArguments({ query, isLive }: Shown): string[] {
  const left = isLive ? ['order', 'since', 'until'] : []
  const flags = Object.entries(query)
    .filter(([name]) => !left.includes(name))
    .flatMap(([name, values]) => [values].flat().flatMap((value) => [flagOf(name), String(value)]))
  return ['flows', ...(isLive ? ['-f'] : []), ...flags]
}

const flagOf = (name: string) => `--${name.replaceAll('_', '-')}`
