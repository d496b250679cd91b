/** Links to the tabs of a dossier. */
import { href, type Query } from '../../place.ts'
import type { Named, TabName } from './name.ts'

export const tabHref = ({ namespace, kind, name }: Named, tab: TabName, query: Query = {}): string =>
  href(['workload', namespace, kind, name], { ...query, tab })
