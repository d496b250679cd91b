/** Documents of the broker, written as they arrive. */
import type { IncomingMessage } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { type Ask, open, partsOf, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { cleanJson } from './clean.ts'
import { type Sink, sinkOf } from './sink.ts'

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
  const sink = await copied(await open(context, flags, question), await sinkOf(context, flags.out), cleanJson)
  if (sink.columns !== null) await sink.write('\n')
  await sink.end()
}

/** Writes an answer as it arrives, on a terminal what `clean` makes of it. @throws Failure if it ends early */
export async function copied(answer: IncomingMessage, sink: Sink, clean: (text: string) => string): Promise<Sink> {
  // A character may be split between two parts.
  const decoder = new StringDecoder()
  try {
    for await (const part of partsOf(answer))
      await sink.write(sink.columns === null ? part : clean(decoder.write(part)))
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(`the answer ended early: ${(error as Error).message}`, EXIT.endedEarly)
  }
  return sink
}
