import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { MinuteLines } from './denials/minute-lines.ts'
import type { Workload } from './names.ts'
import { profileReader } from './profile.ts'
import { ProfileCache } from './profile-cache.ts'
import { buildProfileList, type ListSources } from './profile-list.ts'

/** How observed profiles are read on one database. */
export interface Profiles {
  readonly list: ProfileCache
  /** A workload with its profile as JSON, as it is now; null when nothing was observed of it. */
  readonly one: (workload: Workload) => Promise<string | null>
}

const MS_PER_SECOND = 1_000

export function openProfiles(sources: Omit<ListSources, 'lines'> & { readonly metrics: Metrics; readonly log: Log }): Profiles {
  const { db, config, metrics, log } = sources
  const lines = new MinuteLines(log)
  const list = new ProfileCache({
    ttlMs: config.seccompProfilesCacheTtlSecs * MS_PER_SECOND,
    build: () => buildProfileList({ ...sources, lines }),
    onHit: () => metrics.profileCacheHits.inc(),
    onMiss: () => metrics.profileCacheMisses.inc(),
  })
  // What another server knows may be something else.
  db.onPoolReplaced((gate) => {
    if (gate === 'read') list.forget()
  })
  return { list, one: profileReader(db, config) }
}
