#!/usr/bin/env node
/** The command line `ctb`. */
import { contextOf } from './context.ts'
import { EXIT } from './failure.ts'
import { runWords } from './run.ts'

const context = contextOf(process)
// By themselves signals end a process at once, and kubectl would go on.
process.once('SIGINT', () => process.exit(EXIT.interrupted))
process.once('SIGTERM', () => process.exit(EXIT.terminated))
process.once('SIGHUP', () => process.exit(EXIT.hungUp))
// Node would exit with 1, which is an answer.
process.once('uncaughtException', (error) => {
  context.say(error.stack ?? error.message)
  process.exit(EXIT.fault)
})

await runWords(process.argv.slice(2), context)
