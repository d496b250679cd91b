/**
 * Flows as they are stored (docs/contract.md#following-flows), in bounded memory. Flows count when the token behind
 * them has come, and a stream that was cut goes on from the last token: so none is lost, and none comes twice. Without
 * the DOM, so that plain node runs its tests.
 */
import type { Flow } from './flow.ts'

/** Why flows come at this moment, or do not. */
export type Phase =
  | 'connecting'
  | 'live'
  /** The broker cannot be reached, or the stream broke; it is tried again. */
  | 'lost'
  /** The broker has no room; it is tried again, and the list is polled meanwhile. */
  | 'busy'
  /** The tab is hidden. */
  | 'hidden'
  /** The place is of another database, or too old. */
  | 'gone'
  /** It will not become better by itself. */
  | 'failed'

export interface FollowState {
  readonly phase: Phase
  /** When all flows up to then had come, in milliseconds since 1970; 0 before. */
  readonly asOfMs: number
  /** The flows to show, the newest first. */
  readonly rows: readonly Flow[]
  /** Changed flows that may be in the list below. */
  readonly updates: ReadonlyMap<string, Flow>
  readonly isPaused: boolean
  /** Flows that came since the pause. */
  readonly waiting: number
  /** Flows that had to make room for newer ones. */
  readonly dropped: number
  /** When it is tried again, in milliseconds since 1970. */
  readonly retryAtMs: number | null
  /** What the broker said. */
  readonly message: string
}

export interface FollowOptions {
  /** Opens the stream. It rejects where the broker cannot be reached. */
  readonly open: (resume: string | null, signal: AbortSignal) => Promise<Response>
  /** The first token has come: what was stored before is in lists that are read from now on. */
  readonly onPlace: () => void
  readonly maxRows?: number
  /** For tests. */
  readonly timing?: Partial<Timing>
}

interface Timing {
  /** Without a byte for so long, the stream is dead. */
  readonly silenceMs: number
  readonly firstRetryMs: number
  readonly longestRetryMs: number
  readonly busyRetryMs: number
  /** Changes are told at most this often. */
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
/** Rows are let go so many at a time: a map that loses its first entry each time has to search for the next one. */
const DROPPED_AT_ONCE = 1_000
const MAX_UPDATES = 2_000
/** A group has at most a thousand flows. */
const MAX_GROUP = 10_000
const MAX_LINE_CHARS = 1_048_576

/** A line of the stream, of which every field is checked before use. */
type Line = Partial<Flow> & { readonly update?: boolean; readonly resume?: string; readonly end?: boolean }

export class Follow {
  readonly #options: FollowOptions
  readonly #timing: Timing
  readonly #maxRows: number
  readonly #listeners = new Set<() => void>()
  /** By uuid, the oldest first. */
  #rows = new Map<string, Flow>()
  #updates = new Map<string, Flow>()
  /** Flows since the last token. */
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

  /** The same object until something changes. */
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

  /** Opens the stream, at the place where it was. */
  start(): void {
    this.#close()
    void this.#run()
  }

  stop(): void {
    this.#close()
    clearTimeout(this.#telling)
    this.#telling = undefined
  }

  /** A hidden tab holds no stream, and goes on at its place when it is seen again. */
  hide(): void {
    if (this.#phase === 'gone' || this.#phase === 'failed') return
    this.#close()
    this.#become('hidden')
  }

  show(): void {
    if (this.#phase === 'hidden') this.start()
  }

  /** The rows stay as they are; others wait. */
  pause(): void {
    this.#paused ??= this.state.rows
    this.#tell()
  }

  play(): void {
    this.#paused = null
    this.#waiting = 0
    this.#tell()
  }

  /** Forgets the place, and begins with the flows that come from now on. */
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
    // Without the token behind them these come again.
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
    // Closed by us, and perhaps opened again since.
    if (this.#stream !== stream) return
    this.#close()
    if (end.phase === 'gone' || end.phase === 'failed') return this.#become(end.phase, end.message)
    const { firstRetryMs, longestRetryMs, busyRetryMs } = this.#timing
    if (end.phase === 'live') {
      // A replica that stops ends each stream at once.
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
      // Awaited, because the end of this function aborts what is left of the answer.
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

  /** Takes a line, and returns whether it is the last one of the stream. */
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
    const uuid = flow.uuid!
    if (update && !this.#rows.has(uuid)) {
      this.#updates.delete(uuid)
      this.#updates.set(uuid, flow as Flow)
      if (this.#updates.size > MAX_UPDATES) dropFirst(this.#updates, MAX_UPDATES / 2)
      return
    }
    if (this.#paused !== null && !this.#rows.has(uuid)) this.#waiting++
    this.#rows.set(uuid, flow as Flow)
    if (this.#rows.size < this.#maxRows + DROPPED_AT_ONCE) return
    dropFirst(this.#rows, DROPPED_AT_ONCE)
    this.#dropped += DROPPED_AT_ONCE
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

/** How a stream ended: `live` where it goes on at once. */
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
