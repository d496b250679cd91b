/** The `ctb` commands that list the same flows. */

export interface Shown {
  /** Filters and time window, as query parameters of the API. */
  readonly query: object
  readonly isLive: boolean
}

/** Arguments of `ctb flows`: its flags are the query parameters with hyphens. Following takes no end time. */
export function flowArguments({ query, isLive }: Shown): string[] {
  const left = isLive ? ['order', 'since', 'until'] : []
  const flags = Object.entries(query)
    .filter(([name]) => !left.includes(name))
    .flatMap(([name, values]) => [values].flat().flatMap((value) => [flagOf(name), String(value)]))
  return ['flows', ...(isLive ? ['-f'] : []), ...flags]
}

const flagOf = (name: string) => `--${name.replaceAll('_', '-')}`
