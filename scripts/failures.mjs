// The reporter of `npm test`: that of Node, with a list of the tests that failed before its closing lines. In the output of thousands
// of tests they are hard to find, and a log that is cut at its start has the end left.
import { relative } from 'node:path'
import { Readable } from 'node:stream'
import { spec, tap } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { sourceOf } from './test-build.mjs'

const MAX_LISTED = 100
const MAX_MESSAGE_CHARS = 300
/** The first of the closing lines, in colour or not. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one.
const CLOSING = /^(?:\x1b\[\d+m)?[#ℹ] tests \d+/
/** From here on Node's own choice is the same on a terminal and elsewhere. */
const SPEC_EVERYWHERE_SINCE = 23

export default async function* failures(source) {
  const failed = []
  let isTold = false
  const watched = watch(source, failed)
  const isSpec = process.stdout.isTTY || Number.parseInt(process.versions.node, 10) >= SPEC_EVERYWHERE_SINCE
  for await (const chunk of isSpec ? Readable.from(watched).pipe(new spec()) : tap(watched)) {
    if (!isTold && CLOSING.test(String(chunk))) {
      isTold = true
      yield list(failed)
    }
    yield chunk
  }
  if (!isTold) yield list(failed)
}

async function* watch(source, failed) {
  for await (const event of source) {
    if (event.type === 'test:fail' && isItsOwn(event.data)) failed.push(line(event.data))
    yield event
  }
}

/** Whether it failed by itself, not because a test within it did, nor as one that is expected to. */
function isItsOwn({ details, todo }) {
  return (todo === undefined || todo === false) && details?.error?.failureType !== 'subtestsFailed'
}

function line({ name, file, details }) {
  const place =
    file === undefined
      ? ''
      : ` (${sourceOf(relative(process.cwd(), file.startsWith('file:') ? fileURLToPath(file) : file))})`
  const reason = details?.error?.cause ?? details?.error
  // What comes to no more than "Expected values to be equal:" is told with what follows.
  const message = String(reason?.message ?? reason)
    .split('\n')
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .slice(0, 3)
    .join(' ')
  return `\u2716 ${name}${place}: ${message.slice(0, MAX_MESSAGE_CHARS)}\n`
}

function list(failed) {
  if (failed.length === 0) return ''
  const rest = failed.length > MAX_LISTED ? `and ${failed.length - MAX_LISTED} more\n` : ''
  return `\nfailed:\n${failed.slice(0, MAX_LISTED).join('')}${rest}\n`
}
