/** First in, first out, with room for `capacity`. */
export class BoundedQueue<T> {
  readonly #capacity: number
  #items: T[] = []
  /** Index of the first item; those before it have left. */
  #head = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get length(): number {
    return this.#items.length - this.#head
  }

  /** Returns false if there is no room. */
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

  /** Empties the queue and returns how many items it had. */
  clear(): number {
    const { length } = this
    this.#items = []
    this.#head = 0
    return length
  }
}
