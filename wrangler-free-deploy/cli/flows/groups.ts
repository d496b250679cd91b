/** A stream that is followed, in the groups that the broker makes (docs/contract.md#following-flows). */
import { EXIT, Failure } from '../failure.ts'
import type { FollowedFlow } from './flow.ts'
import { endOfLine, wholeRows } from './rows.ts'

export interface Group {
  readonly flows: readonly FollowedFlow[]
  /** Where the stream goes on behind these flows. */
  readonly resume: string
  readonly isEnd: boolean
}

type Line = FollowedFlow | { readonly resume: string; readonly end?: boolean }

/** The broker sends a token after 1 000 flows at most. */
const MAX_FLOWS = 100_000

/**
 * Groups that came whole; flows behind the last token are dropped, since they come again.
 * @throws Error where the connection breaks, Failure for what no broker sends
 */
export async function* groupsOf(parts: AsyncIterable<Buffer>): AsyncGenerator<Group> {
  let flows: FollowedFlow[] = []
  for await (const { bytes } of wholeRows(parts, endOfLine, Number.POSITIVE_INFINITY)) {
    for (const text of bytes.toString().trimEnd().split('\n')) {
      const line = lineOf(text)
      if (!('resume' in line)) {
        if (flows.push(line) > MAX_FLOWS) throw notOfABroker()
        continue
      }
      yield { flows, resume: line.resume, isEnd: line.end === true }
      flows = []
    }
  }
}

function lineOf(text: string): Line {
  try {
    const line: unknown = JSON.parse(text)
    if (typeof line === 'object' && line !== null) return line as Line
  } catch {}
  throw notOfABroker()
}

const notOfABroker = () => new Failure('the stream is not that of a broker', EXIT.endedEarly)
