/** Longest text of an IPv6 address: six groups of four hex digits and an embedded dotted quad. */
const maxIpv6Chars = 45
/** An IPv6 text has its first colon after at most four hex digits. */
const maxFirstColonIndex = 4
const groupCount = 8
const mappedPrefixGroup = 0xffff
const colon = 0x3a
const dot = 0x2e

/** One buffer for every call: parsing is synchronous and nothing keeps it. */
const groups = new Uint16Array(groupCount)

/**
 * The one spelling of an address under which it is stored and looked up: RFC 5952 for IPv6, dotted quad for IPv4-mapped
 * IPv6. IPv4 and whatever is not an address (empty, `None`, zone ids, CIDR, leading-zero octets, spaces) come back
 * unchanged; never throws. (interop-core 2.3)
 */
export function canonicalAddress(text: string): string {
  const { length } = text
  for (let i = 0; i <= maxFirstColonIndex && i < length; i++) {
    if (text.charCodeAt(i) === colon) return length <= maxIpv6Chars && parseIpv6(text) ? format() : text
  }
  return text
}

/** Fills `groups`; false when the text is not strictly an IPv6 address as Rust's `Ipv6Addr` reads it. */
function parseIpv6(text: string): boolean {
  const { length } = text
  let at = 0
  let count = 0
  let gap = -1
  if (text.charCodeAt(0) === colon) {
    if (text.charCodeAt(1) !== colon) return false
    gap = 0
    at = 2
  }
  while (at < length) {
    // A `::` already stands for one group at least.
    if (count === (gap < 0 ? groupCount : groupCount - 1)) return false
    const start = at
    let value = 0
    let digit = hexDigit(text.charCodeAt(at))
    while (digit >= 0) {
      if (at - start === 4) return false
      value = value * 16 + digit
      at++
      digit = at < length ? hexDigit(text.charCodeAt(at)) : -1
    }
    if (at === start) return false
    if (at < length && text.charCodeAt(at) === dot) {
      if (count > (gap < 0 ? groupCount - 2 : groupCount - 3) || !parseQuad(text, start, count)) return false
      count += 2
      break
    }
    groups[count++] = value
    if (at === length) break
    if (text.charCodeAt(at) !== colon) return false
    at++
    if (at === length) return false
    if (text.charCodeAt(at) === colon) {
      if (gap >= 0) return false
      gap = count
      at++
    }
  }
  if (gap < 0) return count === groupCount
  if (count === groupCount) return false
  groups.copyWithin(groupCount - (count - gap), gap, count)
  groups.fill(0, gap, groupCount - (count - gap))
  return true
}

/** Reads the dotted quad that must fill the text from `at` to its end into the two groups from `group`. */
function parseQuad(text: string, at: number, group: number): boolean {
  let quad = 0
  for (let octet = 0; octet < 4; octet++) {
    if (octet > 0 && text.charCodeAt(at++) !== dot) return false
    const start = at
    let value = 0
    while (at < text.length) {
      const digit = text.charCodeAt(at) - 0x30
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
      at++
      if (value > 255) return false
    }
    const digits = at - start
    if (digits === 0 || (digits > 1 && text.charCodeAt(start) === 0x30)) return false
    quad = quad * 256 + value
  }
  groups[group] = Math.floor(quad / 0x10000)
  groups[group + 1] = quad & 0xffff
  return at === text.length
}

/** The value of a hex digit's char code, -1 for any other. */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** Prints `groups`: un-mapped when IPv4-mapped, else RFC 5952 with hex groups only. */
function format(): string {
  if (isMapped()) return `${groups[6]! >> 8}.${groups[6]! & 0xff}.${groups[7]! >> 8}.${groups[7]! & 0xff}`
  let runStart = -1
  let runLength = 1
  for (let i = 0; i < groupCount; ) {
    if (groups[i] !== 0) {
      i++
      continue
    }
    const start = i
    while (i < groupCount && groups[i] === 0) i++
    if (i - start > runLength) {
      runStart = start
      runLength = i - start
    }
  }
  let out = ''
  for (let i = 0; i < groupCount; i++) {
    if (i === runStart) {
      out += '::'
      i += runLength - 1
      continue
    }
    if (out !== '' && i !== runStart + runLength) out += ':'
    out += groups[i]!.toString(16)
  }
  return out
}

function isMapped(): boolean {
  for (let i = 0; i < 5; i++) if (groups[i] !== 0) return false
  return groups[5] === mappedPrefixGroup
}
