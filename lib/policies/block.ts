/** CIDR blocks: of policies, of addresses, and few that cover many addresses. */
import { isIP } from 'node:net'
import { canonicalAddress } from '../net/address.ts'

/** No covering block has fewer bits. */
const MIN_BITS = { 4: 8, 6: 32 }
const BITS = { 4: 32, 6: 128 }

/** A block has all addresses that agree with `value` in the first `bits`. */
export interface Block {
  readonly family: 4 | 6
  readonly value: bigint
  readonly bits: number
}

/** The block of one address, or of its network of `bits4` or `bits6` bits. Null for a text that is no address. */
export function blockOf(address: string | null, bits4 = 32, bits6 = 128): Block | null {
  if (address === null || address.includes('%')) return null
  const canonical = canonicalAddress(address)
  const family = isIP(canonical)
  if (family !== 4 && family !== 6) return null
  return cut({ family, value: bitsOf(canonical), bits: BITS[family] }, family === 4 ? bits4 : bits6)
}

const PREFIX = /^(?:0|[1-9]\d{0,2})$/

/**
 * A block such as `10.0.0.0/8`; bits behind the prefix are cleared, as the API server does. Null for any other text:
 * leading zeros, zones and IPv4-mapped IPv6 addresses are none, because programs read them differently.
 */
export function parseBlock(cidr: string): Block | null {
  const slash = cidr.indexOf('/')
  const [address, prefix] = [cidr.slice(0, slash), cidr.slice(slash + 1)]
  const one = slash < 0 ? null : blockOf(address)
  const isMapped = one?.family === 4 && address.includes(':')
  return one === null || isMapped || !PREFIX.test(prefix) || Number(prefix) > one.bits ? null : cut(one, Number(prefix))
}

/** A block, or one address as the block of it. */
export const parseBlockOrAddress = (text: string): Block | null =>
  parseBlock(text.includes('/') ? text : `${text}/${text.includes(':') ? BITS[6] : BITS[4]}`)

const cut = ({ family, value }: Block, bits: number): Block => {
  const rest = BigInt(BITS[family] - bits)
  return { family, value: (value >> rest) << rest, bits }
}

function bitsOf(address: string): bigint {
  if (isIP(address) === 4) return address.split('.').reduce((value, byte) => value * 256n + BigInt(byte), 0n)
  const [head = '', tail] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => '0')
  return [...before, ...zeros, ...after].reduce((value, group) => value * 65_536n + BigInt(`0x${group}`), 0n)
}

export function textOfBlock({ family, value, bits }: Block): string {
  if (family === 4) return `${[24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.')}/${bits}`
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 65_535n).toString(16))
  return `${canonicalAddress(groups.join(':'))}/${bits}`
}

export const hasBlock = (outer: Block, inner: Block): boolean =>
  outer.family === inner.family && outer.bits <= inner.bits && cut(inner, outer.bits).value === outer.value

/** At most `count` blocks that have all the given ones, as tight as blocks of one length are; else everything. */
export function covering(blocks: readonly Block[], count: number): Block[] {
  return ([4, 6] as const).flatMap((family) => {
    const own = blocks.filter((one) => one.family === family)
    for (let bits = BITS[family]; bits >= MIN_BITS[family]; bits--) {
      const groups = new Map<bigint, Block[]>()
      for (const one of own) {
        const key = cut(one, Math.min(bits, one.bits)).value
        groups.set(key, [...(groups.get(key) ?? []), one])
      }
      if (groups.size <= count) return [...groups.values()].map(tightest)
    }
    return own.length === 0 ? [] : [{ family, value: 0n, bits: 0 }]
  })
}

/** The longest block that has all of them. */
function tightest(blocks: readonly Block[]): Block {
  let outer = blocks[0]!
  for (const one of blocks) while (!hasBlock(outer, one)) outer = cut(outer, outer.bits - 1)
  return outer
}
