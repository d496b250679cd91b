import type { Metrics } from '../metrics/index.ts'
import { type AskedProfile, profileReader } from './profile.ts'
import { ProfileCache } from './profile-cache.ts'
import { buildProfileList, type ListSources } from './profile-list.ts'

/** Readers of observed profiles on one database. */
export interface Profiles {
  readonly list: ProfileCache
  /** The current state of a workload with its profile as JSON; null if nothing was observed of it. */
  readonly one: (workload: AskedProfile) => Promise<string | null>
}

const MS_PER_SECOND = 1_000

export function openProfiles(sources: ListSources & { readonly metrics: Metrics }): Profiles {
  const { db, config, metrics } = sources
  const list = new ProfileCache({
    ttlMs: config.seccompProfilesCacheTtlSecs * MS_PER_SECOND,
    build: () => buildProfileList(sources),
    onHit: () => metrics.profileCacheHits.inc(),
    onMiss: () => metrics.profileCacheMisses.inc(),
  })
  // The new server may have other data.
  db.onPoolReplaced((gate) => {
    if (gate === 'read') list.forget()
  })
  return { list, one: profileReader(db, config) }
}
