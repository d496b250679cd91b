import { isIPv6 } from 'node:net'

/** Longest text of an IPv6 address: six groups of four hex digits and an embedded dotted quad. */
const MAX_IPV6_CHARS = 45
/** An IPv6 text has its first colon after at most four hex digits. */
const MAX_FIRST_COLON_INDEX = 4

/**
 * The one spelling of an address under which it is stored and looked up: RFC 5952 for IPv6, dotted quad for IPv4-mapped
 * IPv6. IPv4 and whatever is not an address (empty, `None`, zone ids, CIDR, leading-zero octets, spaces) come back
 * unchanged; never throws. (interop-core 2.3)
 */
export function canonicalAddress(text: string): string {
  const firstColon = text.indexOf(':')
  if (firstColon < 0 || firstColon > MAX_FIRST_COLON_INDEX || text.length > MAX_IPV6_CHARS) return text
  // A zone id is part of an address for Node, and of none for the wire.
  if (text.includes('%') || !isIPv6(text)) return text
  const { hostname } = new URL(`http://[${text}]/`)
  const [, high, low] = /^\[::ffff:(\w+):(\w+)\]$/.exec(hostname) ?? []
  if (low === undefined) return hostname.slice(1, -1)
  // A number in the place of a host is an IPv4 address.
  return new URL(`http://0x${high}${low.padStart(4, '0')}/`).hostname
}
