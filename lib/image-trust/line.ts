/**
 * Who reads long answers: of all that have something to read, the one who came first reads, one step a turn of the event loop. Were each given
 * its turn, many at once would all be late together.
 */
export class Line {
  readonly #waiting: { readonly place: number; readonly go: () => void }[] = []
  #places = 0

  /** Takes the last place. What is returned resolves, each time, when it is the turn of that place. */
  join(): () => Promise<void> {
    const place = this.#places++
    return () =>
      new Promise((go) => {
        this.#waiting.push({ place, go })
        if (this.#waiting.length === 1) setImmediate(this.#serve)
      })
  }

  readonly #serve = (): void => {
    const first = this.#waiting.reduce((before, one) => (one.place < before.place ? one : before))
    this.#waiting.splice(this.#waiting.indexOf(first), 1)
    first.go()
    if (this.#waiting.length > 0) setImmediate(this.#serve)
  }
}
