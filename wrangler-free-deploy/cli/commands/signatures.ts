import { listing } from '../list/listing.ts'
import type { Colour } from '../output/cell.ts'
import { shortDigest } from '../output/words.ts'

interface Signature {
  readonly signerKind?: string
  readonly issuer?: string
  readonly san?: string
  readonly keyName?: string
  readonly keyFingerprint?: string
}

interface RunningContainer {
  readonly namespace: string
  readonly workloadKind: string
  readonly workloadName: string
  readonly container: string
  readonly digest: string
  readonly imageRef: string
  readonly verdict: string | null
  readonly reason: string | null
  readonly checkedAt: string | null
  readonly signers: readonly Signature[]
  readonly attestations: readonly (Signature & { readonly predicateType?: string })[]
}

const COLOURS: Readonly<Record<string, Colour>> = { verified: 'green', unsigned: 'red', invalid: 'red' }

/** The identity that is verified: that of a certificate, or a key. */
const signerText = ({ san, keyName, keyFingerprint }: Signature): string =>
  san || keyName || (keyFingerprint ? `key ${keyFingerprint}` : 'unknown')

const distinct = (texts: readonly string[]): string[] => [...new Set(texts)]

export const signatures = listing<{ items: readonly RunningContainer[]; nextAfter: string | null }, RunningContainer>({
  route: '/attestations/running',
  rowsOf: ({ items }) => items,
  nextOf: ({ nextAfter }) => nextAfter,
  columns: [
    { header: 'NAMESPACE', of: ({ namespace }) => namespace },
    { header: 'WORKLOAD', of: ({ workloadKind, workloadName }) => `${workloadKind}/${workloadName}` },
    { header: 'CONTAINER', of: ({ container }) => container },
    {
      header: 'VERDICT',
      of: ({ verdict }) => verdict ?? 'not checked',
      colourOf: ({ verdict }) => COLOURS[verdict ?? ''] ?? 'yellow',
    },
    { header: 'REASON', of: ({ reason }) => reason },
    { header: 'IMAGE', of: ({ imageRef, digest }) => imageRef || shortDigest(digest) },
    { header: 'SIGNERS', of: ({ signers }) => distinct(signers.map(signerText)) },
    { header: 'CHECKED AT', of: ({ checkedAt }) => checkedAt, isTime: true, isWide: true },
    {
      header: 'ISSUERS',
      of: ({ signers }) => distinct(signers.flatMap(({ issuer }) => issuer ?? [])),
      isWide: true,
    },
    {
      header: 'ATTESTATIONS',
      of: ({ attestations }) => distinct(attestations.flatMap(({ predicateType }) => predicateType ?? [])),
      isWide: true,
    },
    { header: 'DIGEST', of: ({ digest }) => digest, isWide: true },
  ],
  nameOf: ({ digest }) => digest,
  brief: 'List the running containers with the verdict about their signatures',
  description: [
    'verified says that a signature verified, by any identity: look at SIGNERS.',
    'not checked and unknown are not the same as unsigned.',
  ],
})
