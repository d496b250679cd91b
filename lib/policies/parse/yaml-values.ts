/**
 * Builds values from the events of js-yaml, in slices of the event loop. The constructor of js-yaml works in one go and
 * neither bounds what aliases repeat nor names a key that is there twice.
 */
import { EVENT_ID, type Event, getScalarValue, SCALAR_STYLE, type ScalarEvent } from 'js-yaml'
import type { Slice } from '../../event-loop/slices.ts'
import { resolvePlain } from './yaml-scalars.ts'

/** Values with all that aliases repeat. A megabyte of policies has a third of it. */
const MAX_VALUES = 250_000
/** Events between two looks at the clock. */
const EVENTS_AT_ONCE = 256
const MAX_SHOWN_CHARS = 80

/** A rule that YAML text breaks, and the index in the text where it does. */
export class YamlFault extends Error {
  readonly index: number
  constructor(message: string, index: number) {
    super(message)
    this.index = index
  }
}

interface Frame {
  readonly members: unknown[] | Record<string, unknown>
  /** The key whose value comes next. */
  key: string | null
  readonly anchor: string | null
  /** Values inside, and the container itself. */
  values: number
}

interface Anchored {
  readonly value: unknown
  /** Null while its container is open. */
  readonly values: number | null
}

/** The documents of one text; those without content are null. Throws `YamlFault`. */
export async function buildValues(text: string, events: readonly Event[], slice: Slice): Promise<unknown[]> {
  const builder = new Builder(text)
  for (let i = 0; i < events.length; i++) {
    if (i % EVENTS_AT_ONCE === 0 && slice.isOver) await slice.next()
    builder.take(events[i]!)
  }
  return builder.documents
}

class Builder {
  readonly documents: unknown[] = []
  readonly #text: string
  #frames: Frame[] = []
  #anchors = new Map<string, Anchored>()
  #index = 0

  constructor(text: string) {
    this.#text = text
  }

  take(event: Event): void {
    this.#index = indexOf(event) ?? this.#index
    switch (event.type) {
      case EVENT_ID.DOCUMENT:
        this.#anchors = new Map()
        this.#open([], null)
        break
      case EVENT_ID.SEQUENCE:
      case EVENT_ID.MAPPING:
        this.#refuseTag(event)
        // Without a prototype, `__proto__` is a key like others.
        this.#open(event.type === EVENT_ID.SEQUENCE ? [] : Object.create(null), this.#anchorOf(event))
        break
      case EVENT_ID.SCALAR:
        this.#scalar(event)
        break
      case EVENT_ID.ALIAS:
        this.#alias(this.#text.slice(event.anchorStart, event.anchorEnd))
        break
      case EVENT_ID.POP:
        this.#close()
        break
    }
  }

  #open(members: Frame['members'], anchor: string | null): void {
    if (anchor !== null) this.#anchors.set(anchor, { value: members, values: null })
    this.#frames.push({ members, key: null, anchor, values: 1 })
  }

  #close(): void {
    const { members, anchor, values } = this.#frames.pop()!
    if (anchor !== null) this.#anchors.set(anchor, { value: members, values })
    if (this.#frames.length > 0) this.#add(members, values)
    else this.documents.push((members as unknown[])[0] ?? null)
  }

  #scalar(event: ScalarEvent): void {
    this.#refuseTag(event)
    const source = getScalarValue(this.#text, event)
    if (event.style === SCALAR_STYLE.DOUBLE_QUOTED && (source.includes('\0') || !source.isWellFormed()))
      this.#refuse('U+0000 and half a surrogate pair are not allowed')
    const isPlain = event.style === SCALAR_STYLE.PLAIN
    const value = isPlain ? resolvePlain(source) : source
    if (isPlain && source === '<<' && this.#isAtKey()) this.#refuse('merge keys (<<) are not supported')
    const anchor = this.#anchorOf(event)
    if (anchor !== null) this.#anchors.set(anchor, { value, values: 1 })
    this.#add(value, 1)
  }

  #alias(name: string): void {
    const anchored = this.#anchors.get(name)
    if (anchored === undefined) this.#refuse(`the alias *${shown(name)} has no anchor`)
    if (anchored.values === null) this.#refuse(`the alias *${shown(name)} is inside of what it stands for`)
    this.#add(anchored.value, anchored.values)
  }

  #add(value: unknown, values: number): void {
    // Values that an alias repeats count in full again, so that a walk through all of them has a bound.
    const frame = this.#frames.at(-1)!
    frame.values += values
    if (frame.values > MAX_VALUES) this.#refuse(`expected at most ${MAX_VALUES} values, repeated ones included`)
    if (Array.isArray(frame.members)) frame.members.push(value)
    else if (frame.key === null) frame.key = this.#keyOf(value, frame.members)
    else {
      frame.members[frame.key] = value
      frame.key = null
    }
  }

  #isAtKey(): boolean {
    const { members, key } = this.#frames.at(-1)!
    return !Array.isArray(members) && key === null
  }

  #keyOf(value: unknown, members: Record<string, unknown>): string {
    if (value === null || typeof value === 'object') this.#refuse('expected a key that is a string')
    const key = String(value)
    if (key in members) this.#refuse(`expected each key once: ${JSON.stringify(shown(key))} is there twice`)
    return key
  }

  #anchorOf({ anchorStart, anchorEnd }: { anchorStart: number; anchorEnd: number }): string | null {
    return anchorStart < 0 ? null : this.#text.slice(anchorStart, anchorEnd)
  }

  #refuseTag({ tagStart }: { tagStart: number }): void {
    if (tagStart >= 0) this.#refuse('tags (!) are not supported')
  }

  #refuse(message: string): never {
    throw new YamlFault(message, this.#index)
  }
}

const shown = (text: string) => text.slice(0, MAX_SHOWN_CHARS)

function indexOf(event: Event): number | null {
  if ('valueStart' in event && event.valueStart >= 0) return event.valueStart
  if ('start' in event && event.start >= 0) return event.start
  return 'anchorStart' in event && event.anchorStart >= 0 ? event.anchorStart : null
}
