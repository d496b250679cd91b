import { compareResults, effectiveVerdict, matcher, type TrustFilter, type TrustResult } from './result.ts'
import { BadAnswer } from './unavailable.ts'

/** Characters of all distinct policies: ten thousand with long names. */
export const MAX_POLICY_CHARS = 4 * 1024 * 1024
/** Results collected beyond the limit before they are sorted and cut. */
const GATHERED = 256

/**
 * Counts results of any number by verdict, collects their policies and keeps the first in order. The others are not
 * held.
 */
export class Tally {
  readonly #matches: (result: TrustResult) => boolean
  readonly #limit: number
  readonly #best: TrustResult[] = []
  /** The last result that still counts; a result that does not sort before it is dropped. */
  #last: TrustResult | null = null
  readonly counts = { total: 0, WouldDeny: 0, Unknown: 0, Trusted: 0 }
  readonly policies = new Set<string>()
  #policyChars = 0

  constructor(filter: TrustFilter, limit: number) {
    this.#matches = matcher(filter)
    this.#limit = limit
  }

  /** @throws BadAnswer if there are too many policies */
  add(result: TrustResult): void {
    if (!this.#matches(result)) return
    this.counts.total++
    this.counts[effectiveVerdict(result)]++
    this.#addPolicy(result.policy)
    if (this.#last !== null && compareResults(result, this.#last) >= 0) return
    this.#best.push(result)
    if (this.#best.length >= this.#limit + GATHERED) this.#cut()
  }

  #addPolicy(policy: string): void {
    const before = this.policies.size
    if (this.policies.add(policy).size === before) return
    this.#policyChars += policy.length
    if (this.#policyChars > MAX_POLICY_CHARS) throw new BadAnswer('more policies than there can be')
  }

  /** At most `limit`, in order. */
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
