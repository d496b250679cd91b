/** First in, first out, with room for `capacity`. */
export class BoundedQueue<T> {
  readonly #capacity: number
  #items: T[] = []
  /** What lies before it has left. */
  #head = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get length(): number {
    return this.#items.length - this.#head
  }

  /** False, and nothing else, when there is no room. */
  push(item: T): boolean {
    if (this.length >= this.#capacity) return false
    this.#items.push(item)
    return true
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined
    const item = this.#items[this.#head++]
    if (this.#head > this.#capacity) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Empties the queue; the number that was in it. */
  clear(): number {
    const { length } = this
    this.#items = []
    this.#head = 0
    return length
  }
}
