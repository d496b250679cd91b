/** Hooks for reads: shared, polled, cached. A hidden tab polls nothing. */
import {
  InfiniteQueryObserver,
  type InfiniteQueryObserverOptions,
  QueryClient,
  QueryObserver,
} from '@tanstack/query-core'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { type Answer, type Params, type ReadPath, read } from './client.ts'
import { isDeep, isRetried, pollOf, retryDelayMs } from './poll.ts'

/** Lists are asked for again this often. */
export const POLL_MS = 30_000
/** Two parts of a page that ask the same within this time share the answer. */
const FRESH_MS = 5_000
/** Answers are dropped this long after the page that showed them is gone. */
const UNUSED_MS = 60_000
/** Pages of a list that are kept in memory, and those that are polled. */
const KEPT_PAGES = 10

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      gcTime: UNUSED_MS,
      // A busy broker, or one that is restarting, is asked again; an error of ours is not.
      retry: isRetried,
      retryDelay: retryDelayMs,
      // The browser does not know whether a broker on this machine can be reached.
      networkMode: 'always',
      refetchOnWindowFocus: true,
    },
  },
})
queries.mount()

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
  /** Whether it is asked for again by itself, so that old data means trouble. */
  readonly isPolled: boolean
  readonly refetch: () => unknown
}

/** The state of a list that is read page by page, of which only some pages are kept. */
export interface PagedReading<T> extends Reading<{ readonly pages: readonly T[] }> {
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly fetchNextPage: () => unknown
  /** Pages before those that are kept were read, and can be read again. */
  readonly hasPreviousPage: boolean
  readonly isFetchingPreviousPage: boolean
  readonly fetchPreviousPage: () => unknown
  /** Number of items in the pages before those that are kept. */
  readonly firstIndex: number
  /** Goes back to the first page, and reads it anew. */
  readonly toStart: () => unknown
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
  return { ...observer.getOptimisticResult(settings), isPolled: pollMs > 0 } as Reading<Answer<P>>
}

/**
 * Reads a list page by page; `fetchNextPage` reads on. At most `KEPT_PAGES` are kept: the first ones go as others come,
 * and `fetchPreviousPage` reads them again. The first pages are read again every half minute; who reads further down
 * asks by hand.
 */
export function usePages<P extends ReadPath>(
  path: P,
  params: Params<P>,
  options: PageOptions<Answer<P>> = {},
): PagedReading<Answer<P>> {
  const { enabled = true, pollMs = POLL_MS, nextOf = nextAfterOf } = options
  const key = JSON.stringify(params)
  const places = useMemo(() => new Places(), [path, key])
  const settings = queries.defaultQueryOptions({
    queryKey: ['pages', path, key],
    queryFn: ({ signal, pageParam }: { signal: AbortSignal; pageParam: string }) =>
      read(path, withAfter(params, pageParam), signal),
    initialPageParam: FIRST_PAGE,
    getNextPageParam: (last: Page, _: unknown, after: string) => places.next(after, last, nextOf(last as Answer<P>)),
    getPreviousPageParam: (_: unknown, __: unknown, after: string) => places.before(after),
    maxPages: KEPT_PAGES,
    enabled,
    refetchInterval: pollOf(pollMs),
    refetchOnWindowFocus: ({ state }: { state: { data: unknown } }) => pollMs > 0 && !isDeep(state.data),
  } as never) as unknown as InfiniteQueryObserverOptions & { queryHash: string }
  const observer = useMemo(() => new InfiniteQueryObserver(queries, settings), [])
  useEffect(() => observer.setOptions(settings), [observer, settings.queryHash, enabled, pollMs])
  useRendersOf(observer)
  const result = observer.getOptimisticResult(settings as never) as unknown as PagedReading<Answer<P>>
  const { pages = [], pageParams = [] } = (result.data ?? {}) as Partial<Kept>
  const toStart = () => {
    queries.setQueryData<Kept>(settings.queryKey!, (kept) =>
      kept === undefined ? kept : { pages: kept.pages.slice(0, 1), pageParams: [FIRST_PAGE] },
    )
    return observer.refetch()
  }
  // The places of an earlier look at the same list are gone.
  const isLost = pageParams.length > 0 && !places.knows(pageParams[0]!)
  // A page that was read again may end elsewhere, where rows came late.
  const isTorn = pages.some((page, i) => i + 1 < pages.length && nextOf(page as Answer<P>) !== pageParams[i + 1])
  useEffect(() => {
    if (isLost) void toStart()
    else if (isTorn && !result.isFetching) void observer.refetch()
  }, [isLost, isTorn && !result.isFetching])
  const isPolled = pollMs > 0 && !isDeep(result.data)
  return { ...result, isPolled, firstIndex: places.startOf(pageParams[0] ?? FIRST_PAGE), toStart }
}

interface Page {
  readonly items?: readonly unknown[]
  readonly nextAfter?: string | null
}
interface Kept {
  readonly pages: readonly Page[]
  readonly pageParams: readonly string[]
}

const nextAfterOf = (page: unknown) => (page as Page).nextAfter ?? null

/** A blank `after` is the first page. */
const FIRST_PAGE = ''

/** Where the pages of a list begin, so that those before can be found again: cursors only lead forward. */
class Places {
  readonly #known = new Map<string, { readonly before: string | null; readonly start: number }>([
    [FIRST_PAGE, { before: null, start: 0 }],
  ])

  knows(after: string): boolean {
    return this.#known.has(after)
  }

  startOf(after: string): number {
    return this.#known.get(after)?.start ?? 0
  }

  before(after: string): string | null {
    return this.#known.get(after)?.before ?? null
  }

  /** The cursor behind a page. */
  next(after: string, { items = [] }: Page, nextAfter: string | null): string | null {
    if (nextAfter !== null) this.#known.set(nextAfter, { before: after, start: this.startOf(after) + items.length })
    return nextAfter
  }
}

function withAfter<P extends ReadPath>(params: Params<P>, after: string): Params<P> {
  if (after === FIRST_PAGE) return params
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
