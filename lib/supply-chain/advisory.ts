/**
 * Ids of vulnerabilities. Databases have ids of their own for one that also has a CVE: two scanners that look into different ones would
 * tell of it twice, so each finding is kept by the id that most of them know.
 */

/** The databases whose ids are preferred, the most preferred first, by how the ids begin. */
const PREFERRED = ['CVE-', 'GHSA-']

/**
 * The id to keep a vulnerability by, and its other ids: its CVE, else its GHSA id, where it has exactly one. An advisory about several
 * vulnerabilities is none of them, and stays by its own id. Ids are the same in any case; an alias is kept as it was written first.
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
  const kept = new Map<string, string>()
  for (const id of ids) if (!kept.has(id.toUpperCase())) kept.set(id.toUpperCase(), id)
  return [...kept.values()]
}

function preferred(ids: readonly string[], own: string): string {
  for (const beginning of PREFERRED) {
    const [only, ...others] = ids.filter((id) => isOf(beginning, id))
    if (only === undefined || others.length > 0) continue
    // CVE ids are written in upper case; others are as their database writes them.
    return beginning === 'CVE-' ? only.toUpperCase() : only
  }
  return own
}
