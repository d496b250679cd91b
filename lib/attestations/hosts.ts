/** Finds host names, addresses and tokens in one word of a `detail`, for `redact`. */
import { isIPv6 } from 'node:net'

export const HOST = '<host>'
export const REDACTED = '<redacted>'
const HOST_PATH = `${HOST}/…`

/** A media type of a vendor has dots but is no host: `application/vnd.oci.image.manifest.v1+json`. */
const MEDIA_TYPE = /^application\/vnd\.[a-z0-9.-]+\+[a-z]+[.:]?$/
const NAMES = /[\p{L}\p{N}_.-]+/gu
const NUMBERS = /[0-9A-Fa-f:.]+/g
const NAME_CHAR = /[\p{L}\p{N}_]/u
const PORT = /:\d{1,5}(?!\d)/y
const ZONE = /%[\w.-]+/y

const NUMBER = /^\d+$/
const MAX_OCTET = 255
const OCTETS = 4
const ADDRESS_INSIDE = /(?<![\d.v])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/
const TOP_LEVEL = /^\p{L}[\p{L}\p{N}_-]+$/u
/** `1.2.rc1`, `v3.0.beta`. */
const VERSION = /^v?\d+(?:\.\d+)*\.(?:alpha|beta|rc|dev|pre|post|final|snapshot)\d*$/i
const HAS_LETTER = /\p{L}/u
/** Base64url of JSON begins like this: `{"`, `{ `, and `{` before a line end. */
const TOKEN_HEAD = /^e[yw][\w-]{4,}$/
/** Base64url of JSON alone, as `X-Registry-Auth` sends it, and tokens with the prefix of their issuer. */
const TOKEN = /^(?:eyJ[\w-]{4}|gh[oprsu]_|github_pat_|glpat-|dckr_pat_|xox[abps]-|A(?:KI|SI)A)[\w-]{9}/
/** `main.go:107`, `config.json`, and the words of Go for a timeout. */
const FILE = /^(?:[\w-]+\.(?:go|json|ya?ml|crt|pem|sock|txt)|Client\.Timeout)$/

const MAX_ADDRESS_CHARS = 64
const ADDRESS_GROUPS = 8

/**
 * Replaces hosts, addresses and JSON web tokens by `<host>`, `<host>/…` (a host with a path, which is dropped) and
 * `<redacted>`. Each character is examined a bounded number of times.
 */
export function redactHosts(text: string): string {
  if (MEDIA_TYPE.test(text)) return text
  let output = ''
  let from = 0
  if (text.includes(':'))
    for (const { 0: run, index } of text.matchAll(NUMBERS)) {
      const address = addressIn(text, run, index)
      if (address === null) continue
      const end = skip(ZONE, text, address.end)
      output += redactNames(text.slice(from, address.start)) + HOST
      if (text[end] === '/') return `${output}/…`
      from = end
    }
  return output + redactNames(text.slice(from))
}

/** Finds an IPv6 address in a run of digits, colons and dots, with or without a punctuation mark around it. */
function addressIn(text: string, run: string, index: number): { start: number; end: number } | null {
  if (run.length > MAX_ADDRESS_CHARS || run.indexOf(':') === run.lastIndexOf(':')) return null
  const [before, after] = [text[index - 1], text[index + run.length]]
  for (const start of run.startsWith(':') ? [0, 1] : [0])
    for (const end of /[:.]$/.test(run) ? [run.length, run.length - 1] : [run.length]) {
      if (!isAddress(run.slice(start, end))) continue
      // Part of a longer word is no address: `std::map`.
      if (start === 0 && before !== undefined && NAME_CHAR.test(before)) continue
      if (end === run.length && after !== undefined && NAME_CHAR.test(after)) continue
      return { start: index + start, end: index + end }
    }
  return null
}

function isAddress(text: string): boolean {
  if (isIPv6(text)) return HAS_DIGIT.test(text)
  const groups = text.split(':')
  // An address followed by a port. More groups are a fingerprint.
  return groups.length === ADDRESS_GROUPS + 1 && isIPv6(groups.slice(0, ADDRESS_GROUPS).join(':'))
}

const HAS_DIGIT = /[0-9A-Fa-f]/

function redactNames(text: string): string {
  let output = ''
  let from = 0
  for (const { 0: run, index } of text.matchAll(NAMES)) {
    const name = run.replace(/^[.-]{1,8}/, '').replace(/[.-]{1,8}$/, '')
    const start = index + run.indexOf(name)
    const end = start + name.length
    if (start < from) continue
    // A fully qualified name ends with a dot.
    const afterName = text[end] === '.' && /[/:]/.test(text[end + 1] ?? '') ? end + 1 : end
    const afterPort = skip(PORT, text, afterName)
    const isPath = text[afterPort] === '/'
    const isPort = afterPort > afterName && HAS_LETTER.test(name)
    const isHidden =
      isToken(name) ||
      (isHost(name) && (isPath || !FILE.test(name))) ||
      (isPort && (isPath || afterName > end || isLocal(name)))
    if (!isHidden) continue
    output += text.slice(from, start)
    if (isPath) return output + HOST_PATH
    output += isToken(name) && afterPort === end ? REDACTED : HOST
    from = afterPort
  }
  return output + text.slice(from)
}

const isLocal = (name: string) => name.toLowerCase() === 'localhost'

/** Names with dots whose last part is a word, and IPv4 addresses; not versions and object identifiers. */
function isHost(name: string): boolean {
  if (!name.includes('.')) return false
  const labels = name.split('.').filter((label) => label !== '')
  if (labels.every((label) => NUMBER.test(label)))
    return labels.length === OCTETS && labels.every((label) => Number(label) <= MAX_OCTET)
  if (ADDRESS_INSIDE.test(name)) return true
  return labels.length > 1 && TOP_LEVEL.test(labels.at(-1)!) && !VERSION.test(name)
}

/** The shape of a JSON web token, whole or cut, or of another token. */
function isToken(name: string): boolean {
  if (TOKEN.test(name)) return true
  const dot = name.indexOf('.')
  return dot > 0 && TOKEN_HEAD.test(name.slice(0, dot))
}

function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}
