#!/usr/bin/env node
/** The command line `ctb`. */
import { run } from '@stricli/core'
import { app } from './app.ts'
import { contextOf } from './context.ts'
import { EXIT } from './failure.ts'

const context = contextOf(process)
process.once('SIGINT', () => process.exit(EXIT.interrupted))
// Node would exit with 1, which is an answer.
process.once('uncaughtException', (error) => {
  context.say(error.stack ?? error.message)
  process.exit(EXIT.fault)
})

await run(app, process.argv.slice(2), context)
const code = Number(context.process.exitCode)
// Negative codes are those of the parser for arguments that it does not understand.
if (code !== EXIT.done) context.exitWith(code < 0 ? EXIT.usage : code)
