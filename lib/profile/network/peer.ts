/** The kind and the port of a peer, as profiles name them (docs/contract.md#workload-profiles). */
import type { Peer } from '../record/network.ts'
import { isExternalAddress } from './address.ts'
import type { EdgeRow } from './read.ts'

const KNOWN = ['pod', 'service', 'node'] as const
const MAX_PORT = 65_535

export function peerKind({ peer_kind, ip }: Pick<EdgeRow, 'peer_kind' | 'ip'>): Peer['peer']['kind'] {
  const known = KNOWN.find((kind) => kind === peer_kind)
  if (known !== undefined) return known
  return peer_kind === null && ip !== null && isExternalAddress(ip) ? 'external' : 'unresolved'
}

/** Agents report ports as text; null for what is no port. */
export function portOf(text: string | null): number | null {
  if (text === null || !/^\d{1,5}$/.test(text)) return null
  const port = Number(text)
  return port <= MAX_PORT ? port : null
}
