#!/usr/bin/env node
/** The command line `ctb`. */
import { run } from '@stricli/core'
import { app } from './app.ts'
import { contextOf } from './context.ts'
import { EXIT } from './failure.ts'

const SIGINT_CODE = 130

process.once('SIGINT', () => process.exit(SIGINT_CODE))
await run(app, process.argv.slice(2), contextOf(process))
// Stricli has negative codes for arguments that it does not understand.
if (Number(process.exitCode) < 0 || Number(process.exitCode) > SIGINT_CODE) process.exitCode = EXIT.usage
