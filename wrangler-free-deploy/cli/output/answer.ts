import type { CliContext } from '../context.ts'
import { cleanJson, cleanText } from './clean.ts'
import { sinkOf } from './sink.ts'

/** Writes an answer: its bytes, or on a terminal its text without what would act on the terminal. */
export async function writeAnswer(
  context: CliContext,
  bytes: Buffer,
  notation: 'json' | 'yaml',
  file?: string,
): Promise<void> {
  const sink = await sinkOf(context, file)
  await sink.write(sink.columns === null ? bytes : shown(bytes.toString(), notation))
  await sink.end()
}

function shown(text: string, notation: 'json' | 'yaml'): string {
  const clean = (notation === 'json' ? cleanJson : cleanText)(text)
  return clean.endsWith('\n') ? clean : `${clean}\n`
}
