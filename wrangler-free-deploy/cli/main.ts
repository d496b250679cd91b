#!/usr/bin/env node
/** The command line `ctb`. */
import { basename } from 'node:path'
import { contextOf } from './context.ts'
import { EXIT } from './failure.ts'
import { COMPLETE, runWords } from './run.ts'

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

const words = process.argv.slice(2)
// kubectl asks a program of this name for the candidates of its plugin.
const isAsked = basename(process.argv[1] ?? '').startsWith('kubectl_complete-')
await runWords(isAsked ? [COMPLETE, '--', ...words] : words, context)
