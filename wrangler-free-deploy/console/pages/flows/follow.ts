/**
 * Follows flows as they are stored (docs/contract.md#following-flows), in bounded memory. Flows are shown once the
 * resume token after them has arrived. A broken stream resumes from the last token, so no flow is lost or shown twice.
 * Does not use the DOM, so that its tests run in plain Node.
 */
import { type Flow, keyOf } from './flow.ts'

/** State of the stream. */
export type Phase =
  | 'connecting'
  | 'live'
  /** The broker cannot be reached, or the stream broke. It is retried. */
  | 'lost'
  /** The broker has no capacity for another follower. It is retried, and the list is polled meanwhile. */
  | 'busy'
  /** The tab is hidden. */
  | 'hidden'
  /** The resume token is too old, or belongs to another database. */
  | 'gone'
  /** A failure that a retry would not mend. */
  | 'failed'

export interface FollowState {
  readonly phase: Phase
  /** All flows stored up to this time have arrived; milliseconds since 1970, 0 before the first token. */
  readonly asOfMs: number
  /** The flows to show, newest first. */
  readonly rows: readonly Flow[]
  /** Updates of flows that may be in the list below. */
  readonly updates: ReadonlyMap<string, Flow>
  readonly isPaused: boolean
  /** Number of flows that arrived since the pause. */
  readonly waiting: number
  /** Number of flows that were removed to make room for newer ones. */
  readonly dropped: number
  /** Time of the next attempt, in milliseconds since 1970. */
  readonly retryAtMs: number | null
  /** Text of the broker's answer. */
  readonly message: string
}

export interface FollowOptions {
  /** Opens the stream. Rejects if the broker cannot be reached. */
  readonly open: (resume: string | null, signal: AbortSignal) => Promise<Response>
  /** The first token has arrived: lists read from now on contain everything stored before it. */
  readonly onPlace: () => void
  readonly maxRows?: number
  /** For tests. */
  readonly timing?: Partial<Timing>
}

interface Timing {
  /** A stream that is silent for this long counts as broken. */
  readonly silenceMs: number
  readonly firstRetryMs: number
  readonly longestRetryMs: number
  readonly busyRetryMs: number
  /** Listeners are notified at most this often. */
  readonly tellMs: number
}

const TIMING: Timing = {
  // Three heartbeats.
  silenceMs: 45_000,
  firstRetryMs: 1_000,
  longestRetryMs: 30_000,
  busyRetryMs: 30_000,
  tellMs: 250,
}
export const MAX_ROWS = 20_000
/** Rows are removed in batches: deleting the first entry of a large Map one by one is slow. */
const DROP_BATCH = 1_000
const MAX_UPDATES = 2_000
/** The broker sends at most a thousand flows between two tokens. */
const MAX_GROUP = 10_000
const MAX_LINE_CHARS = 1_048_576

/** A line of the stream. Every field is checked before use. */
type Line = Partial<Flow> & { readonly update?: boolean; readonly resume?: string; readonly end?: boolean }

export class Follow {
  readonly #options: FollowOptions
  readonly #timing: Timing
  readonly #maxRows: number
  readonly #listeners = new Set<() => void>()
  /** By `keyOf`, the oldest first. */
  #rows = new Map<string, Flow>()
  #updates = new Map<string, Flow>()
  /** Flows that arrived since the last token. */
  #group: Line[] = []
  #resume: string | null = null
  #phase: Phase = 'connecting'
  #asOfMs = 0
  #paused: readonly Flow[] | null = null
  #waiting = 0
  #dropped = 0
  #retryAtMs: number | null = null
  #message = ''
  #failures = 0
  #stream: AbortController | null = null
  #retry: ReturnType<typeof setTimeout> | undefined
  #telling: ReturnType<typeof setTimeout> | undefined
  #state: FollowState | null = null

  constructor(options: FollowOptions) {
    this.#options = options
    this.#timing = { ...TIMING, ...options.timing }
    this.#maxRows = options.maxRows ?? MAX_ROWS
  }

  /** The same object until something changes, as `useSyncExternalStore` needs it. */
  get state(): FollowState {
    this.#state ??= {
      phase: this.#phase,
      asOfMs: this.#asOfMs,
      rows: this.#paused ?? [...this.#rows.values()].reverse(),
      updates: this.#updates,
      isPaused: this.#paused !== null,
      waiting: this.#waiting,
      dropped: this.#dropped,
      retryAtMs: this.#retryAtMs,
      message: this.#message,
    }
    return this.#state
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Opens the stream, resuming from the last token. */
  start(): void {
    this.#close()
    void this.#run()
  }

  stop(): void {
    this.#close()
    clearTimeout(this.#telling)
    this.#telling = undefined
  }

  /** A hidden tab closes the stream and resumes when it is visible again. */
  hide(): void {
    if (this.#phase === 'gone' || this.#phase === 'failed') return
    this.#close()
    this.#become('hidden')
  }

  show(): void {
    if (this.#phase === 'hidden') this.start()
  }

  /** The shown rows stay as they are; new ones are counted. */
  pause(): void {
    this.#paused ??= this.state.rows
    this.#tell()
  }

  play(): void {
    this.#paused = null
    this.#waiting = 0
    this.#tell()
  }

  /** Forgets the resume token and starts with flows stored from now on. */
  restart(): void {
    this.#resume = null
    this.#rows = new Map()
    this.#updates = new Map()
    this.#dropped = 0
    this.#failures = 0
    this.play()
    this.start()
  }

  #close(): void {
    clearTimeout(this.#retry)
    this.#retryAtMs = null
    this.#stream?.abort()
    this.#stream = null
    // Their token has not arrived, so the resumed stream sends these again.
    this.#group = []
  }

  async #run(): Promise<void> {
    const stream = new AbortController()
    this.#stream = stream
    this.#become('connecting')
    const openedAtMs = Date.now()
    let end: End
    try {
      end = await this.#read(stream)
    } catch (error) {
      end = { phase: 'lost', message: (error as Error).message }
    }
    // Closed by us, and possibly reopened since.
    if (this.#stream !== stream) return
    this.#close()
    if (end.phase === 'gone' || end.phase === 'failed') return this.#become(end.phase, end.message)
    const { firstRetryMs, longestRetryMs, busyRetryMs } = this.#timing
    if (end.phase === 'live') {
      // A replica that shuts down ends each stream at once.
      const isShort = Date.now() - openedAtMs < firstRetryMs
      this.#retry = setTimeout(() => void this.#run(), isShort ? firstRetryMs : 0)
      return
    }
    const backOffMs = Math.min(firstRetryMs * 2 ** this.#failures, longestRetryMs)
    const waitMs = end.phase === 'busy' ? Math.max(end.retryAfterMs ?? 0, busyRetryMs) : backOffMs
    this.#failures++
    this.#retry = setTimeout(() => void this.#run(), waitMs)
    this.#retryAtMs = Date.now() + waitMs
    this.#become(end.phase, end.message)
  }

  async #read(stream: AbortController): Promise<End> {
    const silent = () => stream.abort(new Error(`nothing came for ${this.#timing.silenceMs / MS_PER_SECOND} seconds`))
    let watch = setTimeout(silent, this.#timing.silenceMs)
    try {
      const response = await this.#options.open(this.#resume, stream.signal)
      // Awaited because the caller aborts the rest of the answer when this function returns.
      if (!response.ok) return await refusalOf(response)
      const reader = response.body!.getReader()
      const decoder = new TextDecoder()
      let rest = ''
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return { phase: 'lost', message: 'The stream broke off.' }
        clearTimeout(watch)
        watch = setTimeout(silent, this.#timing.silenceMs)
        const lines = (rest + decoder.decode(value, { stream: true })).split('\n')
        rest = lines.pop()!
        if (rest.length > MAX_LINE_CHARS) return { phase: 'failed', message: 'A line of the stream is too long.' }
        for (const line of lines) if (line !== '' && this.#take(JSON.parse(line) as Line)) return { phase: 'live' }
        if (this.#group.length > MAX_GROUP) return { phase: 'failed', message: 'The stream sends no tokens.' }
      }
    } finally {
      clearTimeout(watch)
      stream.abort()
    }
  }

  /** Handles a line, and returns whether it is the last one of the stream. */
  #take(line: Line): boolean {
    if (line.uuid !== undefined) {
      this.#group.push(line)
      return false
    }
    if (line.resume === undefined) return false
    for (const flow of this.#group) this.#keep(flow)
    this.#group = []
    const isFirst = this.#resume === null
    this.#resume = line.resume
    this.#asOfMs = Date.now()
    this.#failures = 0
    this.#become('live')
    if (isFirst) this.#options.onPlace()
    return line.end === true
  }

  #keep({ update, ...flow }: Line): void {
    const key = keyOf(flow as Flow)
    if (update && !this.#rows.has(key)) {
      this.#updates.delete(key)
      this.#updates.set(key, flow as Flow)
      if (this.#updates.size > MAX_UPDATES) dropFirst(this.#updates, MAX_UPDATES / 2)
      return
    }
    if (this.#paused !== null && !this.#rows.has(key)) this.#waiting++
    this.#rows.set(key, flow as Flow)
    if (this.#rows.size < this.#maxRows + DROP_BATCH) return
    dropFirst(this.#rows, DROP_BATCH)
    this.#dropped += DROP_BATCH
  }

  #become(phase: Phase, message = ''): void {
    this.#phase = phase
    this.#message = message
    if (phase === 'live' || phase === 'connecting') this.#retryAtMs = null
    this.#tell()
  }

  #tell(): void {
    this.#telling ??= setTimeout(() => {
      this.#telling = undefined
      this.#state = null
      for (const listener of this.#listeners) listener()
    }, this.#timing.tellMs)
  }
}

/** How a stream ended; `live` means that it resumes at once. */
type End =
  | { readonly phase: 'live' }
  | { readonly phase: 'lost' | 'busy' | 'gone' | 'failed'; readonly message: string; readonly retryAfterMs?: number }

const MS_PER_SECOND = 1_000

async function refusalOf(response: Response): Promise<End> {
  const message = (await response.text()) || `The broker answered ${response.status}.`
  if (response.status === 410) return { phase: 'gone', message }
  if (response.status < 500) return { phase: 'failed', message }
  if (response.status !== 503) return { phase: 'lost', message }
  return { phase: 'busy', message, retryAfterMs: Number(response.headers.get('retry-after')) * MS_PER_SECOND || 0 }
}

function dropFirst(map: Map<string, unknown>, number: number): void {
  let left = number
  for (const key of map.keys()) {
    if (left-- <= 0) return
    map.delete(key)
  }
}
