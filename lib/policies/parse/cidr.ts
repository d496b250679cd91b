/** CIDR blocks and addresses of policies. */
import { isIPv4, isIPv6 } from 'node:net'
import { canonicalAddress } from '../../net/address.ts'

export interface Block {
  /** The network address: 4 or 16 bytes. */
  readonly network: readonly number[]
  readonly bits: number
  /** Canonical: nothing is set behind the prefix. */
  readonly text: string
  readonly isCanonical: boolean
}

const BITS = /^(?:0|[1-9]\d{0,2})$/

/**
 * A block such as `10.0.0.0/8`; null for any other text. Leading zeros, zones and IPv4-mapped IPv6 addresses are none,
 * because programs read them differently.
 */
export function parseBlock(cidr: string): Block | null {
  const slash = cidr.indexOf('/')
  const address = slash < 0 ? null : bytesOf(cidr.slice(0, slash))
  const prefix = cidr.slice(slash + 1)
  if (address === null || !BITS.test(prefix) || Number(prefix) > address.length * 8) return null
  const bits = Number(prefix)
  const network = address.map((byte, i) => byte & maskOf(bits - i * 8))
  const isCanonical = network.every((byte, i) => byte === address[i])
  return { network, bits, text: `${textOf(network)}/${bits}`, isCanonical }
}

/** A block, or one address as the block of it. */
export const parseBlockOrAddress = (text: string): Block | null =>
  parseBlock(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`)

/** Whether the first address of `inner` is in `outer`. */
export const beginsIn = (inner: Block, outer: Block): boolean =>
  inner.network.length === outer.network.length &&
  outer.network.every((byte, i) => byte === (inner.network[i]! & maskOf(outer.bits - i * 8)))

/** The mask of a byte of which `bits` belong to the prefix. */
const maskOf = (bits: number): number => (bits >= 8 ? 255 : bits <= 0 ? 0 : (255 << (8 - bits)) & 255)

function bytesOf(address: string): number[] | null {
  if (isIPv4(address)) return address.split('.').map(Number)
  if (address.includes('%') || !isIPv6(address)) return null
  const [head = '', tail] = address.split('::')
  const front = groupsOf(head)
  const back = tail === undefined ? [] : groupsOf(tail)
  const bytes = [...front, ...Array<number>(16 - front.length - back.length).fill(0), ...back]
  return isMapped(bytes) ? null : bytes
}

const groupsOf = (text: string): number[] =>
  text === ''
    ? []
    : text.split(':').flatMap((group) => {
        if (group.includes('.')) return group.split('.').map(Number)
        const value = Number.parseInt(group, 16)
        return [value >> 8, value & 255]
      })

/** ::ffff:0:0/96 (RFC 4291, 2.5.5.2). */
const isMapped = (bytes: readonly number[]): boolean =>
  bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255

function textOf(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16))
  return canonicalAddress(groups.join(':'))
}
