/**
 * Ids of vulnerabilities. A vulnerability with a CVE often has an id in each database too. Scanners with different
 * databases would report it twice, so each finding is stored by the id that most databases know.
 */

/** Prefixes of the preferred ids, the most preferred first. */
const PREFERRED = ['CVE-', 'GHSA-']

/**
 * Chooses the id to store a vulnerability by, and its other ids: its CVE, else its GHSA id, if there is exactly one. An
 * advisory about several vulnerabilities keeps its own id (docs/contract.md#findings). Ids compare without case; an
 * alias keeps the spelling of its first occurrence.
 */
export function canonicalId(id: string, aliases: readonly string[]): { vuln_id: string; aliases: string[] } {
  if (aliases.length === 0) return { vuln_id: id, aliases: [] }
  const ids = distinctIds([id, ...aliases])
  const vuln_id = isOf('CVE-', id) ? id : preferred(ids, id)
  return { vuln_id, aliases: ids.filter((one) => !isSame(one, vuln_id)) }
}

const isSame = (one: string, other: string) => one.toUpperCase() === other.toUpperCase()
const isOf = (beginning: string, id: string) => id.slice(0, beginning.length).toUpperCase() === beginning

function distinctIds(ids: readonly string[]): string[] {
  const distinct = new Map<string, string>()
  for (const id of ids) if (!distinct.has(id.toUpperCase())) distinct.set(id.toUpperCase(), id)
  return [...distinct.values()]
}

function preferred(ids: readonly string[], own: string): string {
  for (const beginning of PREFERRED) {
    const [only, ...others] = ids.filter((id) => isOf(beginning, id))
    if (only === undefined || others.length > 0) continue
    // CVE ids are written in upper case; other ids keep the spelling of their database.
    return beginning === 'CVE-' ? only.toUpperCase() : only
  }
  return own
}
