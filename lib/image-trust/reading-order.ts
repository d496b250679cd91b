/**
 * Orders the readers of long answers: of all readers with data, the one that joined first reads, one step for each turn
 * of the event loop. Taking turns would make all of them finish late together.
 */
export class ReadingOrder {
  readonly #waiting: { readonly rank: number; readonly go: () => void }[] = []
  #joined = 0

  /** Joins at the end. The returned function resolves, each time, when it is this reader's turn. */
  join(): () => Promise<void> {
    const rank = this.#joined++
    return () =>
      new Promise((go) => {
        this.#waiting.push({ rank, go })
        if (this.#waiting.length === 1) setImmediate(this.#serve)
      })
  }

  readonly #serve = (): void => {
    const first = this.#waiting.reduce((before, one) => (one.rank < before.rank ? one : before))
    this.#waiting.splice(this.#waiting.indexOf(first), 1)
    first.go()
    if (this.#waiting.length > 0) setImmediate(this.#serve)
  }
}
