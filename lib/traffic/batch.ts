import type { Flow, MatchKeys } from './flow.ts'

/** A flow to be stored, and what it is compared by. */
export interface Entry {
  readonly flow: Flow
  readonly keys: MatchKeys
}

/**
 * Flows that are stored together, and which flows could be duplicates of them: of a UDP flow one with the same members but a port,
 * of any other one with the same members, and one with the same uuid (core-telemetry, Deduplication; interop-core section 3,
 * D13, D15). Asking and adding take the same time however many there are.
 */
export class Batch<T extends Entry> {
  readonly entries: T[] = []
  readonly #uuids = new Set<string>()
  /** These hold no null, which equals nothing. */
  readonly #keys = new Set<string | null>()
  readonly #udpKeys = new Set<string | null>()
  readonly #contestedUuids = new Set<string>()
  readonly #contestedKeys = new Set<string | null>()

  add(entry: T): void {
    const { flow } = entry
    const isUdp = flow.ip_protocol === 'UDP'
    if (this.#uuids.has(flow.uuid)) this.#contestedUuids.add(flow.uuid)
    for (const key of suppressingKeys(entry)) if (this.#keys.has(key)) this.#contestedKeys.add(key)
    this.entries.push(entry)
    this.#uuids.add(flow.uuid)
    for (const key of allKeys(entry)) {
      if (key === null) continue
      this.#keys.add(key)
      if (isUdp) this.#udpKeys.add(key)
    }
  }

  /** Whether the flow could be a duplicate of one of these. */
  couldSuppress(entry: Entry): boolean {
    return this.#uuids.has(entry.flow.uuid) || suppressingKeys(entry).some((key) => this.#keys.has(key))
  }

  /** Whether one of these could be a duplicate of the flow, whatever protocol that one has. */
  couldBeSuppressedBy({ keys }: Entry): boolean {
    return this.#udpKeys.has(keys.podPort) || this.#udpKeys.has(keys.peerPort)
  }

  /** All entries between which there could be duplicates, in their order. */
  contested(): T[] {
    if (this.#contestedUuids.size + this.#contestedKeys.size === 0) return []
    return this.entries.filter(
      (entry) =>
        this.#contestedUuids.has(entry.flow.uuid) || allKeys(entry).some((key) => this.#contestedKeys.has(key)),
    )
  }
}

export const allKeys = ({ keys }: Entry) => [keys.all, keys.podPort, keys.peerPort]

/** The keys of stored flows that make this one a duplicate. */
export const suppressingKeys = ({ flow, keys }: Entry) =>
  flow.ip_protocol === 'UDP' ? [keys.podPort, keys.peerPort] : [keys.all]
