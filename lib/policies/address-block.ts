import { BlockList, isIPv4, isIPv6 } from 'node:net'

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
    if (!isIPv4(address)) return false
    const number = numberOf(address)
    return number >= first && number < first + size
  }
}

const numberOf = (address: string): number =>
  address.split('.').reduce((number, byte) => number * 256 + Number(byte), 0)

function inIpv6Block(cidr: string): Test {
  const [network = '', bits] = cidr.split('/')
  const list = new BlockList()
  list.addSubnet(network, Number(bits), 'ipv6')
  return (address) => isIPv6(address) && list.check(address, 'ipv6')
}
