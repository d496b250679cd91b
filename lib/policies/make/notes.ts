/** Notes about a policy (docs/contract.md#network-policies). */

/** Notes of one kind; the others are counted, because an annotation of Kubernetes may have 256 KiB. */
const MAX_OF_KIND = 20
/** Longest note: a name that a client sent may be of any length. */
const MAX_CHARS = 2_000

/** Kinds of notes in their order. */
const KINDS = [
  'LEFT OUT',
  'any endpoint',
  'ephemeral',
  'external',
  'shared labels',
  'other ports',
  'own',
  'dns',
] as const
export type NoteKind = (typeof KINDS)[number]

/** Collects notes, each once, so that their order does not depend on that of the facts. */
export class Notes {
  readonly #notes = new Map<NoteKind, Set<string>>()

  add(kind: NoteKind, text: string): void {
    const notes = this.#notes.get(kind) ?? new Set()
    notes.add(text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}...` : text)
    this.#notes.set(kind, notes)
  }

  /** All notes, sorted within their kind. */
  all(): string[] {
    return KINDS.flatMap((kind) => {
      const sorted = [...(this.#notes.get(kind) ?? [])].sort()
      const more = sorted.length - MAX_OF_KIND
      return more > 0 ? [...sorted.slice(0, MAX_OF_KIND), `${kind}: +${more} more`] : sorted
    })
  }
}
