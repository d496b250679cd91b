/** Which addresses lie outside the cluster (docs/contract.md#workload-profiles). */
import { BlockList, isIP } from 'node:net'

const INSIDE = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 32],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const)
  INSIDE.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  INSIDE.addSubnet(network, bits, 'ipv6')

/**
 * Whether an address is neither private, shared (RFC 6598), loopback, link-local nor unspecified. A text that is no
 * address is not.
 */
export function isExternalAddress(address: string): boolean {
  const family = isIP(address)
  return family !== 0 && !INSIDE.check(address, family === 4 ? 'ipv4' : 'ipv6')
}
