import { compareResults, countedAs, matcher, type TrustFilter, type TrustResult } from './result.ts'

/** Of results in any number: how many there are of each verdict, their policies, and the first in order. The others are not held. */
export class Tally {
  readonly #matches: (result: TrustResult) => boolean
  readonly #limit: number
  readonly #best: TrustResult[] = []
  /** The last of as many as there may be: what is not before it is not among them. */
  #last: TrustResult | null = null
  readonly counts = { total: 0, WouldDeny: 0, Unknown: 0, Trusted: 0 }
  readonly policies = new Set<string>()

  constructor(filter: TrustFilter, limit: number) {
    this.#matches = matcher(filter)
    this.#limit = limit
  }

  add(result: TrustResult): void {
    if (!this.#matches(result)) return
    this.counts.total++
    this.counts[countedAs(result)]++
    this.policies.add(result.policy)
    if (this.#last !== null && compareResults(result, this.#last) >= 0) return
    this.#best.push(result)
    if (this.#best.length >= 2 * this.#limit) this.#cut()
  }

  /** At most `limit`, in their order. */
  results(): readonly TrustResult[] {
    this.#cut()
    return this.#best
  }

  #cut(): void {
    this.#best.sort(compareResults)
    if (this.#best.length < this.#limit) return
    this.#best.length = this.#limit
    this.#last = this.#best.at(-1)!
  }
}
