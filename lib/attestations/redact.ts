/**
 * Removes addresses, hosts, credentials and secrets from texts of registries and their errors. The text is read once
 * from left to right; no pattern matches the same characters in two ways, so the time is linear in the length.
 */

import { truncateToBytes } from '../text/utf8.ts'
import { HOST, REDACTED, redactHosts } from './hosts.ts'
import { isAlsoProse, isCode, isInlineSecret, isProseWord, isSecretName, type Separator } from './secret-names.ts'

/** Bytes of a detail that are examined, and bytes that are stored. */
const MAX_EXAMINED_BYTES = 4096
const MAX_DETAIL_BYTES = 256

const URL = '<url>'
const CREDENTIALS = '<credentials>'
const PLACEHOLDERS = [URL, HOST, CREDENTIALS, REDACTED]

/** Characters between words, for a character class. */
const SEPARATORS = '\\s"\'`“”‘’«»()[\\]{}<>,;\\\\'
/** A placeholder, one separator, or a word. */
const TOKENS = new RegExp(`<(?:url|host|credentials|redacted)>|[${SEPARATORS}]|[^${SEPARATORS}]+`, 'gu')
const BLANK = /^\s$/u
const QUOTE = /^["'`]$/
/** Only these may stand between a name and its `=` or `:`. */
const AFTER_NAME = /^[\s"'`\\]$/u
const SCHEME = /^(?:bearer|basic):?$/i
/** Schemes of an `Authorization` header; alone these are ordinary words. */
const SCHEME_OF_HEADER = /^(?:bearer|basic|token|negotiate|ntlm|apikey|aws4-hmac-sha256):?$/i
const ESCAPED_URL = /(?::|%3a)(?:\/|%2f){2}/i
/** The escapes of `/`, `&` and `=` in JSON strings. */
const ESCAPED_MARK = /\\(?:\/|u0026|u003d)/gi
const MARKS: Readonly<Record<string, string>> = { '\\/': '/', '\\u0026': '&', '\\u003d': '=' }
/** The argument of a DNS look-up: elsewhere a name without dots looks like an ordinary word. */
const LOOKED_UP =
  /(?<=\blookup )[\w-]{1,63}(?= on |: (?:no such host|i\/o timeout|server misbehaving|temporary failure))/gi
const SEPARATOR = /[=:]/g
const PARAMETER_MARK = /[?&#|]/g
const STARTS_VALUE = /^[=:]+/
const DIGEST_TAIL = /@sha\d{1,3}:[0-9a-fA-F]+[.:!?]{0,8}$/
/** Between a name and its value in a sentence. */
const IS = /^(?:is|was)$/
/** The version of a package: `app@v1.2.3`. */
const VERSION_TAIL = /^v?\d[\w.+~-]*$/

/** A replacement can change how its surroundings read, once or twice. */
const MAX_PASSES = 4

/**
 * Returns a detail as it is stored and answered: at most 256 bytes, with `<url>`, `<host>`, `<credentials>@` and
 * `<redacted>` instead of sensitive parts. Redacting its result again changes nothing.
 */
export function redact(detail: string): string {
  let text = examinedPart(detail)
  for (let passes = 0; passes < MAX_PASSES; passes++) {
    const next = cutToStored(redactOnce(text))
    if (next === text) return next
    text = next
  }
  return redactOnce(text) === text ? text : REDACTED
}

/** Redacts every `detail` in stored signatures or attestations; all other text stays byte for byte. */
export function redactDetails(json: string): string {
  const pieces: string[] = []
  let copied = 0
  // Quotes inside a JSON string are escaped, so only a key matches.
  for (let key = json.indexOf(DETAIL_KEY); key !== -1; key = json.indexOf(DETAIL_KEY, copied)) {
    const start = key + DETAIL_KEY.length - 1
    const end = endOfString(json, start)
    const stored = JSON.parse(json.slice(start, end)) as string
    const output = redact(stored)
    pieces.push(json.slice(copied, start), output === stored ? json.slice(start, end) : JSON.stringify(output))
    copied = end
  }
  return pieces.join('') + json.slice(copied)
}

const DETAIL_KEY = '"detail":"'
const STRING_END = /["\\]/g

/** Returns the index after the closing quote of the string that opens at `start`. */
function endOfString(json: string, start: number): number {
  STRING_END.lastIndex = start + 1
  for (let found = STRING_END.exec(json); found; found = STRING_END.exec(json)) {
    if (found[0] === '"') return found.index + 1
    STRING_END.lastIndex = found.index + 2
  }
  return json.length
}

/** Returns the part that is examined. A word that the limit cuts is dropped: its rest could look harmless. */
function examinedPart(detail: string): string {
  const text = truncateToBytes(detail, MAX_EXAMINED_BYTES)
  if (text.length === detail.length) return detail.trim()
  let end = text.length
  while (end > 0 && !BLANK.test(text[end - 1]!)) end--
  return text.slice(0, end).trim()
}

/** Cuts to the stored length, without half a placeholder at the end. */
function cutToStored(text: string): string {
  const cut = truncateToBytes(text, MAX_DETAIL_BYTES)
  if (cut.length === text.length) return text.trim()
  const open = cut.lastIndexOf('<')
  const isHalf = open !== -1 && PLACEHOLDERS.some((one) => one !== cut.slice(open) && one.startsWith(cut.slice(open)))
  return (isHalf ? cut.slice(0, open) : cut).trim()
}

/** State of the scan between two words. */
interface State {
  /** The value of a secret comes next. */
  isValueDue: boolean
  /** The next word may also be the rest of a sentence. */
  mayBeProse: boolean
  /** The previous token was a placeholder for a value. */
  isAfterValue: boolean
  isInUrl: boolean
  /** A word that names a secret if `=` or `:` follows. */
  name: string
}

function redactOnce(sent: string): string {
  const text = sent.replace(ESCAPED_MARK, (mark) => MARKS[mark.toLowerCase()]!).replace(LOOKED_UP, HOST)
  const state: State = { isValueDue: false, mayBeProse: false, isAfterValue: false, isInUrl: false, name: '' }
  let output = ''
  TOKENS.lastIndex = 0
  // Text beyond the stored length is cut later.
  for (let found = TOKENS.exec(text); found && output.length <= MAX_DETAIL_BYTES; found = TOKENS.exec(text)) {
    const [token] = found
    if (state.isInUrl && !BLANK.test(token) && !QUOTE.test(token)) continue
    state.isInUrl = false
    const isSeparator = TOKENS.lastIndex - found.index === 1 && IS_SEPARATOR.test(token)
    if (isSeparator && state.isValueDue && QUOTE.test(token)) {
      const { value, end } = quoted(text, found.index)
      const isHarmless = value === '' || PLACEHOLDERS.includes(value) || (state.mayBeProse && isProseWord(value))
      output += token + (isHarmless ? value : REDACTED)
      if (end === text.length) break
      output += token
      TOKENS.lastIndex = end + 1
      state.isValueDue = false
    } else if (isSeparator) {
      output += token
      state.isAfterValue = false
      if (!AFTER_NAME.test(token)) state.name = ''
    } else if (PLACEHOLDERS.includes(token)) {
      output += token
      Object.assign(state, { isAfterValue: state.isValueDue, isValueDue: false, name: '' })
    } else {
      output += redactWord(token, state)
    }
  }
  return output
}

const IS_SEPARATOR = new RegExp(`^[${SEPARATORS}]$`, 'u')

function quoted(text: string, open: number): { value: string; end: number } {
  const quote = text[open]!
  const isEscaped = (at: number) => text[at - 1] === '\\'
  let close = text.indexOf(quote, open + 1)
  // An escaped quote belongs to the value, unless the whole text is escaped.
  while (close !== -1 && isEscaped(close) && !isEscaped(open)) close = text.indexOf(quote, close + 1)
  const end = close === -1 ? text.length : close
  return { value: text.slice(open + 1, end), end }
}

function redactWord(word: string, state: State): string {
  const { isAfterValue, name } = state
  if (state.isValueDue && SCHEME_OF_HEADER.test(word)) return word
  if (state.mayBeProse && isProseWord(word)) state.isValueDue = false
  const { isValueDue } = state
  Object.assign(state, { mayBeProse: false, isAfterValue: false, name: '' })
  if (isValueDue || isAfterValue) {
    const value = STARTS_VALUE.exec(word)?.[0] ?? ''
    if (isValueDue && value === word) return word
    state.isValueDue = false
    const next = word.indexOf('&')
    if (isAfterValue && next === 0) return redactParameters(word, state)
    return (isAfterValue ? '' : REDACTED) + (next > 0 && isAfterValue ? redactParameters(word.slice(next), state) : '')
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
    state.mayBeProse = isCode(name)
    return separators === word ? word : separators + REDACTED
  }
  if (isInlineSecret(name, word)) return REDACTED
  const output = redactParameters(word, state)
  if (IS.test(word)) state.name = name
  return output
}

/** Drops the query of a path; elsewhere checks each `name=value` on its own. */
function redactParameters(word: string, state: State): string {
  const query = word.indexOf('?')
  const path = word.indexOf('/')
  if (query !== -1 && path !== -1 && path < query) return redactPart(word.slice(0, query), state)
  let output = ''
  let from = 0
  for (const { 0: mark, index } of word.matchAll(PARAMETER_MARK)) {
    // A secret may contain any mark except `&`, which begins the next parameter.
    if (state.isAfterValue && mark !== '&') continue
    if (index > from && !state.isAfterValue) output += redactPart(word.slice(from, index), state)
    if (state.isAfterValue && mark !== '&') continue
    state.isAfterValue = false
    output += mark
    if (output.length > MAX_DETAIL_BYTES) return output
    from = index + 1
  }
  return from < word.length && !state.isAfterValue ? output + redactPart(word.slice(from), state) : output
}

function redactPart(part: string, state: State): string {
  state.name = part
  state.isValueDue = false
  const [digest = ''] = DIGEST_TAIL.exec(part) ?? []
  const rest = digest === '' ? part : part.slice(0, -digest.length)
  const at = rest.lastIndexOf('@')
  if (at > 0) {
    const tail = redactHosts(rest.slice(at + 1))
    const isVersion = VERSION_TAIL.test(tail) && !rest.slice(0, at).includes(':')
    if (!isVersion) return `${CREDENTIALS}@${tail}${digest}`
  }
  let from = 0
  for (const { 0: separator, index } of rest.matchAll(SEPARATOR)) {
    const name = rest.slice(from, index)
    if (name !== '' && isSecretName(name, separator as Separator)) {
      const start = index + STARTS_VALUE.exec(rest.slice(index))![0].length
      if (isCode(name) && isProseWord(rest.slice(start))) break
      const head = redactHosts(rest.slice(0, index)) + rest.slice(index, start)
      if (start < rest.length || digest !== '') {
        state.isAfterValue = true
        return head + REDACTED
      }
      state.isValueDue = true
      state.mayBeProse = separator === ':' ? isAlsoProse(name) : isCode(name)
      return head
    }
    from = index + 1
  }
  return redactHosts(rest) + digest
}
