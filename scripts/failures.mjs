// The reporter of `npm test`: Node's reporter, plus a list of the failed tests before its closing lines. Among
// thousands of tests they are hard to find, and a log that is truncated at its start still has its end.
import { relative } from 'node:path'
import { Readable } from 'node:stream'
import { spec, tap } from 'node:test/reporters'
import { fileURLToPath } from 'node:url'
import { sourceOf } from './test-build.mjs'

const MAX_LISTED = 100
const MAX_MESSAGE_CHARS = 300
/** Matches the first of the closing lines, in colour or not. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a colour code begins with one.
const CLOSING = /^(?:\x1b\[\d+m)?[#ℹ] tests \d+/
/** From this version on, Node's default reporter is the same on a terminal and elsewhere. */
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

/** Whether the test failed by itself: not because a test within it did, and not as an expected failure. */
function isItsOwn({ details, todo }) {
  return (todo === undefined || todo === false) && details?.error?.failureType !== 'subtestsFailed'
}

function line({ name, file, details }) {
  const place =
    file === undefined
      ? ''
      : ` (${sourceOf(relative(process.cwd(), file.startsWith('file:') ? fileURLToPath(file) : file))})`
  const reason = details?.error?.cause ?? details?.error
  // Some messages have only "Expected values to be equal:" on their first line.
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
