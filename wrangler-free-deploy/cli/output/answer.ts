import type { CliContext } from '../context.ts'
import { cleanJson, cleanText } from './clean.ts'

/** Writes an answer: its bytes, or on a terminal its text without what would act on the terminal. */
export function writeAnswer(context: CliContext, bytes: Buffer, notation: 'json' | 'yaml'): Promise<void> {
  const isTerminal = context.columns !== null
  return context.write(isTerminal ? shown(bytes.toString(), notation) : bytes)
}

function shown(text: string, notation: 'json' | 'yaml'): string {
  const clean = (notation === 'json' ? cleanJson : cleanText)(text)
  return clean.endsWith('\n') ? clean : `${clean}\n`
}
