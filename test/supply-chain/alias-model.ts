/** The id that a finding is stored by, computed from all posts in order. */

/** States that `alias` is another id of the vulnerability `vuln_id`. */
export interface AliasClaim {
  readonly vuln_id: string
  readonly alias: string
}

const same = (one: string, other: string) => one.toUpperCase() === other.toUpperCase()
const rankOf = (id: string) => ['CVE-', 'GHSA-'].findIndex((start) => id.toUpperCase().startsWith(start)) >>> 0

export function storedId(
  { vuln_id, aliases }: { vuln_id: string; aliases: readonly string[] },
  claims: readonly AliasClaim[],
): string {
  const isAdvisory = aliases.some((alias) => rankOf(alias) <= 1)
  if (isAdvisory) return vuln_id
  const calls = (id: string, alias: string) => claims.some((one) => same(one.vuln_id, id) && same(one.alias, alias))
  const claimants = claims.filter(({ alias }) => same(alias, vuln_id)).map((one) => one.vuln_id)
  const [chosen] = claimants
    .filter((id) => rankOf(id) < rankOf(vuln_id))
    .filter((id) => claimants.every((other) => same(other, id) || calls(id, other)))
    .sort()
  return chosen ?? vuln_id
}
