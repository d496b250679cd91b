import type { Metrics } from '../observability/metrics.ts'
import { type AskedProfile, profileReader } from './profile.ts'
import { ProfileCache } from './profile-cache.ts'
import { buildProfileList, type ListSources } from './profile-list.ts'

/** How observed profiles are read on one database. */
export interface Profiles {
  readonly list: ProfileCache
  /** A workload with its profile as JSON, as it is now; null when nothing was observed of it. */
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
  // What another server knows may be something else.
  db.onPoolReplaced((gate) => {
    if (gate === 'read') list.forget()
  })
  return { list, one: profileReader(db, config) }
}
