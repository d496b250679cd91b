import { BlockList, isIP } from 'node:net'

type Test = (address: string) => boolean

/** An address of the pod itself, which no policy applies to. */
export const isLoopback: Test = (address) => inBlock('127.0.0.0/8')(address) || inBlock('::1/128')(address)

const tests = new Map<string, Test>()
/** More than one posted text has. */
const MAX_TESTS = 100_000

/** A test whether an address is in a valid CIDR block. An address of the other family is not, nor any other text. */
export function inBlock(cidr: string): Test {
  let test = tests.get(cidr)
  if (test === undefined) {
    test = cidr.includes(':') ? inIpv6Block(cidr) : inIpv4Block(cidr)
    if (tests.size >= MAX_TESTS) tests.clear()
    tests.set(cidr, test)
  }
  return test
}

function inIpv4Block(cidr: string): Test {
  const [network = '', bits] = cidr.split('/')
  const size = 2 ** (32 - Number(bits))
  const first = numberOf(network)
  return (address) => {
    const { family, number } = read(address)
    return family === 4 && number >= first && number < first + size
  }
}

let last = { address: '', family: 0, number: 0 }

/** One address is compared with many blocks, so it is read once. `number` is that of an IPv4 address. */
function read(address: string): typeof last {
  if (last.address !== address) {
    const family = isIP(address)
    last = { address, family, number: family === 4 ? numberOf(address) : 0 }
  }
  return last
}

const numberOf = (address: string): number =>
  address.split('.').reduce((number, byte) => number * 256 + Number(byte), 0)

function inIpv6Block(cidr: string): Test {
  const [network = '', bits] = cidr.split('/')
  const list = new BlockList()
  list.addSubnet(network, Number(bits), 'ipv6')
  return (address) => read(address).family === 6 && list.check(address, 'ipv6')
}
