/** Documents of the broker, written as they arrive. */
import { StringDecoder } from 'node:string_decoder'
import { type Ask, open, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { cleanJson } from './clean.ts'
import { sinkOf } from './sink.ts'

interface Flags extends ConnectionFlags {
  readonly out?: string
  readonly printRequest?: boolean
}

/**
 * Writes a document of JSON: its bytes, or on a terminal its text without what would act on the terminal.
 * @throws Failure also if it ends early; a file then does not appear
 */
export async function download(context: CliContext, flags: Flags, question: Ask): Promise<void> {
  if (flags.printRequest) return context.write(requestText(context, flags, question))
  const answer = await open(context, flags, question)
  const sink = await sinkOf(context, flags.out)
  // A character may be split between two parts.
  const decoder = new StringDecoder()
  for await (const part of whole(answer))
    await sink.write(sink.columns === null ? part : cleanJson(decoder.write(part)))
  if (sink.columns !== null) await sink.write('\n')
  await sink.end()
}

async function* whole(answer: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* answer
  } catch (error) {
    throw new Failure(`the document ended early: ${(error as Error).message}`, EXIT.endedEarly)
  }
}
