/** The two forms in which the broker streams flows. */
import type { IncomingMessage } from 'node:http'
import { STREAM } from '../connection/ask.ts'
import { cleanJson, cleanText } from '../output/clean.ts'
import type { FlowFacts } from './flow.ts'
import { type EndOfRow, endOfLine, endOfRecord, type Rows } from './rows.ts'

export interface Form {
  readonly contentType: string
  readonly endOf: EndOfRow
  /** Rows in front of the flows. */
  readonly heads: number
  /** For a terminal. */
  readonly clean: (text: string) => string
  /** The flows among the rows that came. */
  readonly flowsOf: (rows: Rows) => Rows
  /** The facts beside the flows, once all have come; null where the stream was cut. */
  readonly factsOf: (answer: IncomingMessage) => Partial<FlowFacts> | null
}

/** A stream without this line at its end was cut. It is no flow, so it is not among the rows. */
const END = '{"end":true,'

export function jsonLines(): Form {
  let facts: FlowFacts | null = null
  return {
    ...{ contentType: STREAM, endOf: endOfLine, heads: 0, clean: cleanJson },
    flowsOf({ bytes, count }) {
      const last = bytes.subarray(bytes.lastIndexOf('\n', -2) + 1)
      if (!last.subarray(0, END.length).equals(Buffer.from(END))) return { bytes, count }
      facts = JSON.parse(last.toString()) as FlowFacts
      return { bytes: bytes.subarray(0, bytes.length - last.length), count: count - 1 }
    },
    factsOf: () => facts,
  }
}

export function csv(hasHead: boolean): Form {
  let isHead = true
  return {
    ...{ contentType: 'text/csv', endOf: endOfRecord, heads: 1, clean: cleanText },
    flowsOf({ bytes, count }) {
      if (!isHead) return { bytes, count }
      isHead = false
      return { bytes: hasHead ? bytes : bytes.subarray(endOfRecord(bytes, 0) + 1), count: count - 1 }
    },
    factsOf: ({ headers }) => ({ observedSince: headers['x-kguardian-observed-since']?.toString() ?? null }),
  }
}
