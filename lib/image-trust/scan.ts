/** Reads the answer of the evaluator while it arrives. */
import { ListScan } from './list-scan.ts'
import { readResult, type TrustResult } from './result.ts'
import { BadAnswer, REASON, Unavailable } from './unavailable.ts'

/**
 * Calls `take` with each result and returns the time of their evaluation, null before the first pass of the evaluator.
 * An invalid answer is read to its end, since "too large" is the more useful reason.
 * @throws Unavailable for an invalid answer, and whatever `chunks` throws
 */
export async function scanResults(
  chunks: AsyncIterable<Buffer>,
  take: (result: TrustResult) => void,
  waitForTurn: () => Promise<void>,
): Promise<string | null> {
  const scan = new ListScan('results', (element) => take(readResult(element)))
  let fault: unknown = null
  for await (const chunk of chunks) {
    if (fault !== null) continue
    await waitForTurn()
    try {
      scan.push(chunk)
    } catch (error) {
      fault = error
    }
  }
  try {
    if (fault !== null) throw fault
    return evaluatedAtOf(scan.end())
  } catch (error) {
    if (error instanceof BadAnswer) throw new Unavailable(REASON.invalid, { cause: error })
    throw error
  }
}

/**
 * Reads the rest of the body, outside the list. The evaluator may write an empty list as null, but the key has to be
 * there.
 */
function evaluatedAtOf(answer: unknown): string | null {
  const { results, evaluatedAt = null } = (answer ?? {}) as Record<string, unknown>
  if (results !== null && !Array.isArray(results)) throw new BadAnswer('results: no list')
  if (evaluatedAt !== null && typeof evaluatedAt !== 'string') throw new BadAnswer('evaluatedAt: no text')
  return evaluatedAt
}
