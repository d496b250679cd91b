/** States of a page without data: loading, failed, empty, or not watched. */
import type { ComponentChildren } from 'preact'
import { ApiError } from '../api/client.ts'
import type { Reading } from '../api/query.ts'
import { POLL_MS } from '../api/query.ts'
import { signOut, tokenSource } from '../api/session.ts'
import { useNow } from '../hooks.ts'
import { durationText, localText } from './time.tsx'

const AGE_STEP_MS = 5_000

/** The reason for an empty view: no data at all, no match for the filter, or nothing is watched. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="faint">{children}</div>}
    </div>
  )
}

/** Shows a placeholder while loading, the failure if no answer ever arrived, otherwise `children` with the data. */
export function Shown<T>({ reading, children }: { reading: Reading<T>; children: (data: T) => ComponentChildren }) {
  const { data, error } = reading
  if (data !== undefined)
    return (
      <>
        <Stale reading={reading} />
        {children(data)}
      </>
    )
  return error === null ? <Loading /> : <Failure error={error} retry={reading.refetch} />
}

export function Loading() {
  return (
    <div class="loading" role="status">
      <span class="unseen">Loading</span>
      <span class="bar" />
      <span class="bar" />
      <span class="bar" />
    </div>
  )
}

/** Marks outdated data with its age. */
export function Stale({ reading }: { reading: Reading<unknown> }) {
  const { error, dataUpdatedAt, isPolled, refetch, isFetching } = reading
  const now = useNow(AGE_STEP_MS)
  const ageMs = now - dataUpdatedAt
  if (error === null && (!isPolled || ageMs < POLL_MS * 3)) return null
  return (
    <p class="stale" role="status">
      As of {localText(new Date(dataUpdatedAt).toISOString())}, {durationText(Math.max(ageMs, 0))} old
      {error && <>: {reasonOf(error)}</>}{' '}
      <button type="button" class="quiet" disabled={isFetching} onClick={() => refetch()}>
        {isFetching ? 'Asking…' : 'Ask again'}
      </button>
    </p>
  )
}

interface Explained {
  readonly title: string
  readonly advice: string
  /** Whether reads with this failure are repeated automatically. */
  readonly isTransient?: boolean
}

const LOST: Explained = {
  title: 'The broker cannot be reached',
  advice: 'It may be restarting, or the connection to it is gone.',
  isTransient: true,
}

const EXPLAINED: Readonly<Record<number, Explained>> = {
  0: LOST,
  401: { title: 'No valid token', advice: 'The broker did not accept the token.' },
  403: { title: 'The token may not read this', advice: 'It lacks the scope that the route needs.' },
  404: {
    title: 'Not found',
    advice: 'Nothing of this name is stored: it never was, or it is older than what is kept.',
  },
  410: {
    title: 'Too old to go on from',
    advice: 'The place in the stream belongs to another database, or is older than what is kept. Start again from now.',
  },
  503: {
    title: 'The broker is busy',
    advice: 'It, or its database, has too much to do.',
    isTransient: true,
  },
  // From the edge proxy, with details in its answer.
  502: LOST,
  504: LOST,
}

const FORBIDDEN = 403

interface FailureProps {
  readonly error: Error
  readonly retry?: () => unknown
  /** Set for an action by button, which is not repeated automatically. */
  readonly isByHand?: boolean
}

/** A failed read, with the broker's message. */
export function Failure({ error, retry, isByHand = false }: FailureProps) {
  const status = error instanceof ApiError ? error.status : null
  const explained = (status === null ? undefined : EXPLAINED[status]) ?? {
    title: status === null ? 'This page failed' : `The broker refused (${status})`,
    advice: '',
  }
  return (
    <div class="failure" role="alert">
      <p class="empty-title">{explained.title}</p>
      <p>
        {explained.advice}
        {explained.isTransient && !isByHand && ' This page asks again by itself.'}
      </p>
      {isNews(error.message, explained) && <pre class="wrap">{error.message}</pre>}
      {retry && (
        <button type="button" onClick={() => retry()}>
          Try again
        </button>
      )}
      {status === FORBIDDEN && tokenSource === 'browser' && (
        <button type="button" onClick={signOut}>
          Use another token
        </button>
      )}
    </div>
  )
}

/** The code of a page could not be loaded: its files are gone once another release is served. */
export function NotLoaded({ error }: { error: Error }) {
  return (
    <div class="failure" role="alert">
      <p class="empty-title">This page could not be loaded</p>
      <p>
        The broker may have been updated since the console was opened, or cannot be reached. Loading the console anew
        gets the files that it serves now.
      </p>
      <pre class="wrap">{error.message}</pre>
      <button type="button" onClick={() => window.location.reload()}>
        Load the console anew
      </button>
    </div>
  )
}

/** Whether the message adds anything to the title. */
const isNews = (message: string, { title }: Explained) =>
  message !== '' && message.replace(/\.$/, '').toLowerCase() !== title.toLowerCase()

function reasonOf(error: Error): string {
  const status = error instanceof ApiError ? error.status : null
  return (status === null ? undefined : EXPLAINED[status]?.title.toLowerCase()) ?? error.message
}
