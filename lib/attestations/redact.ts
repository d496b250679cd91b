/**
 * Text of registries and of their errors, without what tells where things are and how to get there (interop-supply-chain 1.4). It is read
 * once from left to right: no pattern here has two ways to match the same characters, so that no text takes longer than its length.
 */

import { truncateToBytes } from '../text/utf8.ts'
import { HOST, REDACTED, withoutHosts } from './hosts.ts'
import { isCode, isPlain, isProse, isSaidSecret, isSecretName, type Separator } from './secret-names.ts'

/** Bytes of a detail that are looked at, and those that are kept. */
const MAX_LOOKED_BYTES = 4096
const MAX_DETAIL_BYTES = 256

const URL = '<url>'
const CREDENTIALS = '<credentials>'
const PLACEHOLDERS = [URL, HOST, CREDENTIALS, REDACTED]

/** A placeholder, one separator, or a word. */
const TOKENS = /<(?:url|host|credentials|redacted)>|[\s"'`“”‘’«»()[\]{}<>,;\\]|[^\s"'`“”‘’«»()[\]{}<>,;\\]+/gu
const BLANK = /^\s$/u
const QUOTE = /^["'`]$/
/** Between a name and its `=` or `:` may be these alone. */
const AFTER_NAME = /^[\s"'`\\]$/u
const SCHEME = /^(?:bearer|basic):?$/i
/** Of an `Authorization` header; by themselves these are words. */
const SCHEME_OF_HEADER = /^(?:bearer|basic|token|negotiate|ntlm|apikey|aws4-hmac-sha256):?$/i
const ESCAPED_URL = /(?::|%3a)(?:\/|%2f){2}/i
/** As encoders of JSON write `/`, `&` and `=` in strings. */
const ESCAPED_MARK = /\\(?:\/|u0026|u003d)/gi
const MARKS: Readonly<Record<string, string>> = { '\\/': '/', '\\u0026': '&', '\\u003d': '=' }
/** What a resolver was asked for: a name without dots cannot be told from a word elsewhere. */
const LOOKED_UP =
  /(?<=\blookup )[\w-]{1,63}(?= on |: (?:no such host|i\/o timeout|server misbehaving|temporary failure))/gi
const SEPARATOR = /[=:]/g
const PARAMETER_MARK = /[?&#|]/g
const STARTS_VALUE = /^[=:]+/
const DIGEST_TAIL = /@sha\d{1,3}:[0-9a-fA-F]+[.:!?]{0,8}$/
/** Between a name and its value in a sentence. */
const IS = /^(?:is|was)$/
/** Of a package: `app@v1.2.3`. */
const VERSION_TAIL = /^v?\d[\w.+~-]*$/

/** A detail changes what is around a change, once or twice. */
const MAX_PASSES = 4

/**
 * A detail as it is stored and answered: `<url>`, `<host>`, `<credentials>@` and `<redacted>` in place of what nobody should read, at most
 * 256 bytes. What came out of it comes out again as it is.
 */
export function redact(detail: string): string {
  let text = looked(detail)
  for (let passes = 0; passes < MAX_PASSES; passes++) {
    const next = shortened(passOver(text))
    if (next === text) return next
    text = next
  }
  return passOver(text) === text ? text : REDACTED
}

/** Stored signatures or attestations with every detail redacted again; nothing else of the text is another. */
export function redactDetails(json: string): string {
  const pieces: string[] = []
  let copied = 0
  // Within a string of JSON quotes are escaped, so that only a key reads like this.
  for (let key = json.indexOf(DETAIL_KEY); key !== -1; key = json.indexOf(DETAIL_KEY, copied)) {
    const start = key + DETAIL_KEY.length - 1
    const end = endOfString(json, start)
    const stored = JSON.parse(json.slice(start, end)) as string
    const shown = redact(stored)
    pieces.push(json.slice(copied, start), shown === stored ? json.slice(start, end) : JSON.stringify(shown))
    copied = end
  }
  return pieces.join('') + json.slice(copied)
}

const DETAIL_KEY = '"detail":"'
const STRING_END = /["\\]/g

/** Behind the closing quote of the string that opens at `start`. */
function endOfString(json: string, start: number): number {
  STRING_END.lastIndex = start + 1
  for (let found = STRING_END.exec(json); found; found = STRING_END.exec(json)) {
    if (found[0] === '"') return found.index + 1
    STRING_END.lastIndex = found.index + 2
  }
  return json.length
}

/** As much as is looked at. A word that the end cuts could look like another, so that it goes too. */
function looked(detail: string): string {
  const text = truncateToBytes(detail, MAX_LOOKED_BYTES)
  if (text.length === detail.length) return detail.trim()
  let end = text.length
  while (end > 0 && !BLANK.test(text[end - 1]!)) end--
  return text.slice(0, end).trim()
}

/** At most as many bytes as are kept, without half a placeholder at the end. */
function shortened(text: string): string {
  const kept = truncateToBytes(text, MAX_DETAIL_BYTES)
  if (kept.length === text.length) return text.trim()
  const open = kept.lastIndexOf('<')
  const isHalf = open !== -1 && PLACEHOLDERS.some((one) => one !== kept.slice(open) && one.startsWith(kept.slice(open)))
  return (isHalf ? kept.slice(0, open) : kept).trim()
}

/** What the words so far have to do with the next. */
interface State {
  /** The value of a secret comes next. */
  isValueDue: boolean
  /** Or the rest of a sentence. */
  isDoubtful: boolean
  /** What came right before was a placeholder for one. */
  isAfterValue: boolean
  isInUrl: boolean
  /** A word that may be the name of a secret, if `=` or `:` comes. */
  name: string
}

function passOver(sent: string): string {
  const text = sent.replace(ESCAPED_MARK, (mark) => MARKS[mark.toLowerCase()]!).replace(LOOKED_UP, HOST)
  const state: State = { isValueDue: false, isDoubtful: false, isAfterValue: false, isInUrl: false, name: '' }
  let shown = ''
  TOKENS.lastIndex = 0
  // What comes behind as much as is kept is cut.
  for (let found = TOKENS.exec(text); found && shown.length <= MAX_DETAIL_BYTES; found = TOKENS.exec(text)) {
    const [token] = found
    if (state.isInUrl && !BLANK.test(token) && !QUOTE.test(token)) continue
    state.isInUrl = false
    const isSeparator = TOKENS.lastIndex - found.index === 1 && IS_SEPARATOR.test(token)
    if (isSeparator && state.isValueDue && QUOTE.test(token)) {
      const { value, end } = quoted(text, found.index)
      const isShown = value === '' || PLACEHOLDERS.includes(value) || (state.isDoubtful && isPlain(value))
      shown += token + (isShown ? value : REDACTED)
      if (end === text.length) break
      shown += token
      TOKENS.lastIndex = end + 1
      state.isValueDue = false
    } else if (isSeparator) {
      shown += token
      state.isAfterValue = false
      if (!AFTER_NAME.test(token)) state.name = ''
    } else if (PLACEHOLDERS.includes(token)) {
      shown += token
      Object.assign(state, { isAfterValue: state.isValueDue, isValueDue: false, name: '' })
    } else {
      shown += wordHidden(token, state)
    }
  }
  return shown
}

const IS_SEPARATOR = /^[\s"'`“”‘’«»()[\]{}<>,;\\]$/u

function quoted(text: string, open: number): { value: string; end: number } {
  const quote = text[open]!
  const isEscaped = (at: number) => text[at - 1] === '\\'
  let close = text.indexOf(quote, open + 1)
  // An escaped quote is of the value, unless all of the text is escaped.
  while (close !== -1 && isEscaped(close) && !isEscaped(open)) close = text.indexOf(quote, close + 1)
  const end = close === -1 ? text.length : close
  return { value: text.slice(open + 1, end), end }
}

function wordHidden(word: string, state: State): string {
  const { isAfterValue, name } = state
  if (state.isValueDue && SCHEME_OF_HEADER.test(word)) return word
  if (state.isDoubtful && isPlain(word)) state.isValueDue = false
  const { isValueDue } = state
  Object.assign(state, { isDoubtful: false, isAfterValue: false, name: '' })
  if (isValueDue || isAfterValue) {
    const value = STARTS_VALUE.exec(word)?.[0] ?? ''
    if (isValueDue && value === word) return word
    state.isValueDue = false
    const next = word.indexOf('&')
    if (isAfterValue && next === 0) return parametersHidden(word, state)
    return (isAfterValue ? '' : REDACTED) + (next > 0 && isAfterValue ? parametersHidden(word.slice(next), state) : '')
  }
  if (word.includes('://') || ESCAPED_URL.test(word)) {
    state.isInUrl = true
    return URL
  }
  if (SCHEME.test(word)) {
    state.isValueDue = true
    return word
  }
  const [separators] = STARTS_VALUE.exec(word) ?? []
  if (separators !== undefined && isSecretName(name, separators[0] as Separator)) {
    state.isValueDue = separators === word
    state.isDoubtful = isCode(name)
    return separators === word ? word : separators + REDACTED
  }
  if (isSaidSecret(name, word)) return REDACTED
  const shown = parametersHidden(word, state)
  if (IS.test(word)) state.name = name
  return shown
}

/** A path loses its query; elsewhere each `name=value` is looked at by itself. */
function parametersHidden(word: string, state: State): string {
  const query = word.indexOf('?')
  const path = word.indexOf('/')
  if (query !== -1 && path !== -1 && path < query) return partHidden(word.slice(0, query), state)
  let shown = ''
  let from = 0
  for (const { 0: mark, index } of word.matchAll(PARAMETER_MARK)) {
    // A secret may hold any mark but the one before the next parameter.
    if (state.isAfterValue && mark !== '&') continue
    if (index > from && !state.isAfterValue) shown += partHidden(word.slice(from, index), state)
    if (state.isAfterValue && mark !== '&') continue
    state.isAfterValue = false
    shown += mark
    if (shown.length > MAX_DETAIL_BYTES) return shown
    from = index + 1
  }
  return from < word.length && !state.isAfterValue ? shown + partHidden(word.slice(from), state) : shown
}

function partHidden(part: string, state: State): string {
  state.name = part
  state.isValueDue = false
  const [digest = ''] = DIGEST_TAIL.exec(part) ?? []
  const rest = digest === '' ? part : part.slice(0, -digest.length)
  const at = rest.lastIndexOf('@')
  if (at > 0) {
    const tail = withoutHosts(rest.slice(at + 1))
    const isVersion = VERSION_TAIL.test(tail) && !rest.slice(0, at).includes(':')
    if (!isVersion) return `${CREDENTIALS}@${tail}${digest}`
  }
  let from = 0
  for (const { 0: separator, index } of rest.matchAll(SEPARATOR)) {
    const name = rest.slice(from, index)
    if (name !== '' && isSecretName(name, separator as Separator)) {
      const start = index + STARTS_VALUE.exec(rest.slice(index))![0].length
      if (isCode(name) && isPlain(rest.slice(start))) break
      const head = withoutHosts(rest.slice(0, index)) + rest.slice(index, start)
      if (start < rest.length || digest !== '') {
        state.isAfterValue = true
        return head + REDACTED
      }
      state.isValueDue = true
      state.isDoubtful = separator === ':' ? isProse(name) : isCode(name)
      return head
    }
    from = index + 1
  }
  return withoutHosts(rest) + digest
}
