import type { Flow, MatchKeys } from './flow.ts'

/** A flow to store, and its match keys. */
export interface Entry {
  readonly flow: Flow
  readonly keys: MatchKeys
}

/**
 * Flows that are stored together, and which flows may be duplicates of them (docs/contract.md#deduplication): of a UDP
 * flow, one with the same members except one port; of any other flow, one with the same members; in both cases one with
 * the same uuid, if it is of the same day. Queries and additions take constant time.
 */
export class Batch<T extends Entry> {
  readonly entries: T[] = []
  readonly #uuids = new Set<string>()
  /** Without null, which equals nothing. */
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

  /** Whether the flow may be a duplicate of one of these. */
  couldSuppress(entry: Entry): boolean {
    return this.#uuids.has(entry.flow.uuid) || suppressingKeys(entry).some((key) => this.#keys.has(key))
  }

  /** Whether one of these may be a duplicate of the flow, whatever the protocol of that flow. */
  couldBeSuppressedBy({ keys }: Entry): boolean {
    return this.#udpKeys.has(keys.podPort) || this.#udpKeys.has(keys.peerPort)
  }

  /** All entries that may have duplicates among them, in order. */
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
