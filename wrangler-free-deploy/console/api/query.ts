/** Hooks for reads: shared, polled, cached. A hidden tab polls nothing. */
import {
  InfiniteQueryObserver,
  type InfiniteQueryObserverOptions,
  QueryClient,
  QueryObserver,
} from '@tanstack/query-core'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { type Answer, ApiError, type Params, type ReadPath, read } from './client.ts'

/** Lists are asked for again this often. */
export const POLL_MS = 30_000
const LONGEST_POLL_MS = 300_000
/** Two parts of a page that ask the same within this time share the answer. */
const FRESH_MS = 5_000
/** Answers are dropped this long after the page that showed them is gone. */
const UNUSED_MS = 60_000
const MAX_RETRIES = 2
const RETRY_MS = 1_000

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      gcTime: UNUSED_MS,
      // A busy broker, or one that is restarting, is asked again; an error of ours is not.
      retry: (failures, error) => failures < MAX_RETRIES && isPassing(error),
      retryDelay: (failures, error) => retryAfterOf(error) ?? RETRY_MS * 2 ** failures,
      // The browser does not know whether a broker on this machine can be reached.
      networkMode: 'always',
      refetchOnWindowFocus: true,
    },
  },
})
queries.mount()

const isPassing = (error: unknown) => error instanceof ApiError && (error.status === 0 || error.status === 503)
const retryAfterOf = (error: unknown) => (error instanceof ApiError ? error.retryAfterMs : null)

export interface ReadOptions {
  /** Whether to read at all; a page that waits for another answer says no. */
  readonly enabled?: boolean
  /** 0 for an answer that never changes. */
  readonly pollMs?: number
}

export interface PageOptions<T> extends ReadOptions {
  /** Where a page has the place of the next one; `nextAfter` unless said. */
  readonly nextOf?: (page: T) => string | null
}

/** The state of a read. */
export interface Reading<T> {
  readonly data: T | undefined
  /** Of the last try; `data` is then that of an earlier one. */
  readonly error: Error | null
  readonly isFetching: boolean
  /** Milliseconds since 1970; 0 while there is no data. */
  readonly dataUpdatedAt: number
  readonly refetch: () => unknown
}

/** The state of a list that is read page by page. */
export interface PagedReading<T> extends Reading<{ readonly pages: readonly T[] }> {
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly fetchNextPage: () => unknown
}

/** After a failure the next question waits longer and longer. */
const pollOf =
  (pollMs: number) => (query: { readonly state: { readonly status: string; readonly errorUpdateCount: number } }) => {
    if (pollMs === 0) return false
    const { status, errorUpdateCount } = query.state
    return status === 'error' ? Math.min(pollMs * 2 ** Math.min(errorUpdateCount, 10), LONGEST_POLL_MS) : pollMs
  }

/** Reads a route, and again every half minute. */
export function useRead<P extends ReadPath>(path: P, params: Params<P>, options: ReadOptions = {}): Reading<Answer<P>> {
  const { enabled = true, pollMs = POLL_MS } = options
  const settings = queries.defaultQueryOptions<unknown, Error>({
    queryKey: [path, JSON.stringify(params)],
    queryFn: ({ signal }) => read(path, params, signal),
    enabled,
    refetchInterval: pollOf(pollMs),
  })
  const observer = useMemo(() => new QueryObserver<unknown, Error>(queries, settings), [])
  useEffect(() => observer.setOptions(settings), [observer, settings.queryHash, enabled, pollMs])
  useRendersOf(observer)
  return observer.getOptimisticResult(settings) as Reading<Answer<P>>
}

/** Reads a list page by page; `fetchNextPage` reads on. Only what was read is asked for again. */
export function usePages<P extends ReadPath>(
  path: P,
  params: Params<P>,
  options: PageOptions<Answer<P>> = {},
): PagedReading<Answer<P>> {
  const { enabled = true, pollMs = POLL_MS, nextOf } = options
  const settings = queries.defaultQueryOptions({
    queryKey: ['pages', path, JSON.stringify(params)],
    queryFn: ({ signal, pageParam }: { signal: AbortSignal; pageParam: unknown }) =>
      read(path, withAfter(params, pageParam), signal),
    initialPageParam: null,
    getNextPageParam: (last: unknown) =>
      nextOf === undefined ? ((last as { nextAfter?: string | null }).nextAfter ?? null) : nextOf(last as Answer<P>),
    enabled,
    refetchInterval: pollOf(pollMs),
  } as never) as unknown as InfiniteQueryObserverOptions & { queryHash: string }
  const observer = useMemo(() => new InfiniteQueryObserver(queries, settings), [])
  useEffect(() => observer.setOptions(settings), [observer, settings.queryHash, enabled, pollMs])
  useRendersOf(observer)
  return observer.getOptimisticResult(settings as never) as never
}

function withAfter<P extends ReadPath>(params: Params<P>, after: unknown): Params<P> {
  if (after === null) return params
  const { query, ...rest } = params as { query?: object }
  return { ...rest, query: { ...query, after } } as Params<P>
}

/** All items of the pages that were read. */
export function itemsOf<T>(reading: PagedReading<{ items: T[] }>): T[] {
  return useMemo(() => reading.data?.pages.flatMap(({ items }) => items) ?? [], [reading.data])
}

function useRendersOf(observer: { readonly subscribe: (listener: () => void) => () => void }): void {
  const [, render] = useState(0)
  useEffect(() => observer.subscribe(() => render((count) => count + 1)), [observer])
}
