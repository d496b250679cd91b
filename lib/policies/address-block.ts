import { BlockList, isIP } from 'node:net'

const family = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

const blocks = new Map<string, (address: string) => boolean>()
const MAX_BLOCKS = 10_000

/** A test whether an address is in a valid CIDR block. An address of the other family is not, nor any other text. */
export function inBlock(cidr: string): (address: string) => boolean {
  const known = blocks.get(cidr)
  if (known !== undefined) return known
  const [address = '', bits] = cidr.split('/')
  const list = new BlockList()
  list.addSubnet(address, Number(bits), family(address))
  // BlockList finds IPv4-mapped IPv6 addresses in IPv4 blocks, too.
  const test = (one: string) => isIP(one) === isIP(address) && list.check(one, family(one))
  if (blocks.size >= MAX_BLOCKS) blocks.clear()
  blocks.set(cidr, test)
  return test
}
