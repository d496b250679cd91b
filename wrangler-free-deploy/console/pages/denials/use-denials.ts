/** Reads the denials of a time window that moves on while the page is open. */
import { useMemo } from 'preact/hooks'
import type { Answer, Params } from '../../api/client.ts'
import { type Reading, useRead } from '../../api/query.ts'
import { useNow } from '../../hooks.ts'
import { toMs } from '../../parts/moment.ts'
import { sinceOf } from './since.ts'

const PATH = '/seccomp/denials'
const STEP_MS = 60_000

export type Denial = Answer<typeof PATH>[number]
type Query = NonNullable<Params<typeof PATH>['query']>

export interface DenialsRead {
  readonly reading: Reading<readonly Denial[]>
  /** The parameters with which a command returns the same rows. */
  readonly params: { readonly query: Query }
}

/** The newest denials come first, so a limit leaves out none of the window in favour of older ones. */
export function useDenials(filter: Omit<Query, 'since' | 'limit'>, since: string | null, limit: number): DenialsRead {
  const { asked, exact, fromMs } = sinceOf(since, useNow(STEP_MS))
  const paramsFrom = (from: string | null) => ({ query: { ...filter, ...(from !== null && { since: from }), limit } })
  const reading = useRead(PATH, paramsFrom(asked))
  const data = useMemo(() => reading.data?.filter(({ lastSeen }) => toMs(lastSeen) >= fromMs), [reading.data, fromMs])
  return { reading: { ...reading, data }, params: paramsFrom(exact) }
}
