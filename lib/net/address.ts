import { isIPv6 } from 'node:net'

/** Longest text of an IPv6 address: six groups of four hex digits and an embedded dotted quad. */
const MAX_IPV6_CHARS = 45
/** An IPv6 text has its first colon after at most four hex digits. */
const MAX_FIRST_COLON_INDEX = 4

/**
 * The canonical form in which addresses are stored and looked up (docs/contract.md#addresses-and-times): RFC 5952 for
 * IPv6, dotted quad for IPv4 and IPv4-mapped IPv6. Anything else (empty, `None`, zone ids, CIDR, leading zeros, spaces)
 * is returned unchanged; never throws.
 */
export function canonicalAddress(text: string): string {
  const firstColon = text.indexOf(':')
  if (firstColon < 0 || firstColon > MAX_FIRST_COLON_INDEX || text.length > MAX_IPV6_CHARS) return text
  // Node accepts zone ids, the wire format does not.
  if (text.includes('%') || !isIPv6(text)) return text
  const { hostname } = new URL(`http://[${text}]/`)
  const [, high, low] = /^\[::ffff:(\w+):(\w+)\]$/.exec(hostname) ?? []
  if (low === undefined) return hostname.slice(1, -1)
  // The URL parser reads a number in place of a host as an IPv4 address.
  return new URL(`http://0x${high}${low.padStart(4, '0')}/`).hostname
}
