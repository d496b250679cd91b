/** Answers of `GET /flows/edges`, kept until the job `flow-edges` counts again (docs/contract.md#flow-edges). */
import { fixed, type Gate } from '../db/index.ts'
import type { CachedBody } from '../http/response/cached-body.ts'
import { EDGE_ANSWERS_BYTES } from '../limits/limits.ts'

const COUNTED_AT = fixed<{ counted_at: string }[]>('select counted_at::text from flow_edge_cursor')

export class EdgeCache {
  #countedAt = ''
  #bytes = 0
  readonly #answers = new Map<string, Promise<CachedBody>>()

  /**
   * The answer that `build` gave to this question since edges were last counted. Requests that ask the same at the same
   * time wait for one build. A failed build is not kept, nor one that would take too much memory.
   */
  async read(gate: Gate, question: string, build: () => Promise<CachedBody>): Promise<CachedBody> {
    const [row] = await gate((sql) => COUNTED_AT(sql))
    if (row!.counted_at !== this.#countedAt) {
      this.#answers.clear()
      this.#bytes = 0
      this.#countedAt = row!.counted_at
    }
    const known = this.#answers.get(question)
    if (known !== undefined) return known
    const answer = build()
    this.#answers.set(question, answer)
    const forget = () => {
      if (this.#answers.get(question) === answer) this.#answers.delete(question)
    }
    answer.then(({ plain, packed }) => {
      if (this.#answers.get(question) !== answer) return
      const bytes = plain.length + packed.length
      if (this.#bytes + bytes > EDGE_ANSWERS_BYTES) forget()
      else this.#bytes += bytes
    }, forget)
    return answer
  }
}
