/** Hooks for reads. Answers are shared between components, cached and polled. A hidden tab does not poll. */
import {
  InfiniteQueryObserver,
  type InfiniteQueryObserverOptions,
  QueryClient,
  QueryObserver,
} from '@tanstack/query-core'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { type Answer, type Params, type ReadPath, read } from './client.ts'
import { isDeep, isRetried, pollOf, retryDelayMs } from './poll.ts'

/** Polling interval of lists. */
export const POLL_MS = 30_000
/** Two components that read the same route within this time share one answer. */
const FRESH_MS = 5_000
/** Answers stay cached for this long after the last component that used them is removed. */
const UNUSED_MS = 60_000
/** Number of pages of a list that stay in memory. */
const KEPT_PAGES = 10

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: FRESH_MS,
      gcTime: UNUSED_MS,
      // Retries when the broker is busy or restarting, but not after a client error.
      retry: isRetried,
      retryDelay: retryDelayMs,
      // Browsers may report "offline" although a broker on this machine is reachable.
      networkMode: 'always',
      refetchOnWindowFocus: true,
    },
  },
})
queries.mount()

export interface ReadOptions {
  /** Whether to read at all; false while the component waits for another answer. */
  readonly enabled?: boolean
  /** Polling interval in milliseconds; 0 for an answer that never changes. */
  readonly pollMs?: number
}

export interface PageOptions<T> extends ReadOptions {
  /** Finds the cursor of the next page in an answer; `nextAfter` by default. */
  readonly nextOf?: (page: T) => string | null
}

/** The state of a read. */
export interface Reading<T> {
  readonly data: T | undefined
  /** The error of the last attempt; `data` may still hold an earlier answer. */
  readonly error: Error | null
  readonly isFetching: boolean
  /** Milliseconds since 1970; 0 while there is no data. */
  readonly dataUpdatedAt: number
  /** Whether it is polled; data older than the interval then means trouble. */
  readonly isPolled: boolean
  readonly refetch: () => unknown
}

/** The state of a paged list. Only some of its pages stay in memory. */
export interface PagedReading<T> extends Reading<{ readonly pages: readonly T[] }> {
  readonly hasNextPage: boolean
  readonly isFetchingNextPage: boolean
  readonly fetchNextPage: () => unknown
  /** Whether earlier pages were removed from memory; they can be read again. */
  readonly hasPreviousPage: boolean
  readonly isFetchingPreviousPage: boolean
  readonly fetchPreviousPage: () => unknown
  /** Number of items in the removed pages before the first one in memory. */
  readonly firstIndex: number
  /** Goes back to the first page and reads it again. */
  readonly toStart: () => unknown
}

/** Reads a route and repeats the read every half minute. */
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
 * Reads a list page by page; `fetchNextPage` reads the next page. At most `KEPT_PAGES` stay in memory: the first pages
 * are removed as further ones arrive, and `fetchPreviousPage` reads them again. While only the first pages are loaded
 * they are polled; further down the user reloads by hand.
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
  // Cursors of an earlier visit to the same list are out of date.
  const isLost = pageParams.length > 0 && !places.knows(pageParams[0]!)
  // Rows that arrived late can move the end of a page that is read again.
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

/** An empty `after` is the first page. */
const FIRST_PAGE = ''

/** Cursors of all pages that were read. A cursor only leads forward, so going back needs the cursors from before. */
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

  /** The cursor of the page after this one. */
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

/** The items of all pages in memory. */
export function itemsOf<T>(reading: PagedReading<{ items: T[] }>): T[] {
  return useMemo(() => reading.data?.pages.flatMap(({ items }) => items) ?? [], [reading.data])
}

function useRendersOf(observer: { readonly subscribe: (listener: () => void) => () => void }): void {
  const [, render] = useState(0)
  useEffect(() => observer.subscribe(() => render((count) => count + 1)), [observer])
}
