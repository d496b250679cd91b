import { z } from 'zod'
import type { Slice } from '../event-loop/slices.ts'
import { sortInSlices } from '../event-loop/sort-in-slices.ts'
import { TrustResult } from './result.ts'
import type { Tally } from './tally.ts'

export const MAX_RESULTS = 2_000

const count = z.int().min(0)

/** The body of GET /image-trust (docs/contract.md#image-trust). */
export const ImageTrustAnswer = z
  .strictObject({
    available: z.boolean().describe('`false` means that nothing is known, not that nothing would be denied.'),
    reason: z.string().optional().describe('Why it is not available; absent otherwise.'),
    evaluatedAt: z.string().nullable().describe('As the evaluator sent it; null until it has finished a pass.'),
    total: count.describe('Number of matching results, regardless of the limit.'),
    wouldDeny: count,
    unknown: count,
    trusted: count,
    policies: z.array(z.string()).describe('The policies of all matching results.'),
    results: z
      .array(TrustResult)
      .max(MAX_RESULTS)
      .describe('The worst first, then by namespace, workload, container and policy.'),
    truncated: z.boolean().describe('Whether the list was cut at the limit.'),
  })
  .meta({ id: 'ImageTrust' })

/** The answer if nothing is known. */
export const unavailable = (reason: string): string => {
  const counts = { total: 0, wouldDeny: 0, unknown: 0, trusted: 0 }
  const none = { evaluatedAt: null, ...counts, policies: [], results: [], truncated: false }
  return JSON.stringify({ available: false, reason, ...none } satisfies z.output<typeof ImageTrustAnswer>)
}

/** Text is converted to bytes in pieces of this many characters; at once, it would be held twice. */
const PIECE_CHARS = 64 * 1024

/** Renders the answer in slices, since it may list a hundred thousand policies. */
export async function renderAnswer(tally: Tally, evaluatedAt: string | null, slice: Slice): Promise<Buffer> {
  const { total, WouldDeny, Unknown, Trusted } = tally.counts
  const pieces: Buffer[] = []
  const counts = { total, wouldDeny: WouldDeny, unknown: Unknown, trusted: Trusted }
  let text = JSON.stringify({ available: true, evaluatedAt, ...counts }).slice(0, -1)
  const list = async (key: string, values: readonly unknown[]) => {
    text += `,"${key}":[`
    for (const [i, value] of values.entries()) {
      text += i === 0 ? JSON.stringify(value) : `,${JSON.stringify(value)}`
      if (text.length < PIECE_CHARS) continue
      pieces.push(Buffer.from(text))
      text = ''
      if (slice.isOver) await slice.next()
    }
    text += ']'
  }
  const results = tally.results()
  await list('policies', await sortInSlices([...tally.policies], (a, b) => a < b, slice))
  await list('results', results)
  pieces.push(Buffer.from(`${text},"truncated":${total > results.length}}`))
  return Buffer.concat(pieces)
}
