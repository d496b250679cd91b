/** A request of the map as arguments of `ctb`: its flags are the query parameters with hyphens. */

export function edgeArguments(query: object): string[] {
  const flags = Object.entries(query).flatMap(([name, values]) =>
    [values].flat().flatMap((value) => [flagOf(name), String(value)]),
  )
  return ['edges', ...flags]
}

const flagOf = (name: string) => (name === 'namespace' ? '-n' : `--${name.replaceAll('_', '-')}`)
