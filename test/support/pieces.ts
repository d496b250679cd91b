import type { Pieces } from '../../lib/http/response/stream.ts'

/** The values of a generator as the pieces of an answer. */
export function piecesFrom(generator: AsyncGenerator<string>): Pieces {
  return {
    async next() {
      const { value, done } = await generator.next()
      return done ? null : Buffer.from(value)
    },
    cancel() {
      generator.return(undefined).catch(() => {})
    },
  }
}
