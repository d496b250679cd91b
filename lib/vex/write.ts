/** The VEX document of an image (docs/contract.md#decisions). The same decisions give the same document. */
import { createHash } from 'node:crypto'
import type { Config } from '../config/index.ts'
import { VERSION } from '../version.ts'
import { productWord } from '../wire-names/index.ts'
import { writeCycloneDxVex } from './cyclonedx-out.ts'
import type { VexHead } from './head.ts'
import { writeOpenVex } from './openvex-out.ts'
import type { VexFormat } from './parsed.ts'
import type { ImageDecision } from './read.ts'

export const CONTENT_TYPES: Readonly<Record<VexFormat, string>> = {
  openvex: 'application/json',
  cyclonedx: 'application/vnd.cyclonedx+json',
}

/** @param decisions at least one, in the order of the document */
export function vexOfImage(
  format: VexFormat,
  image: { readonly digest: string; readonly repository: string | null },
  decisions: readonly ImageDecision[],
  { annotationPrefix, wireNames }: Pick<Config, 'annotationPrefix' | 'wireNames'>,
): string {
  const author = `${productWord(wireNames)}-broker/${VERSION}`
  const repository = image.repository ?? ''
  const facts = JSON.stringify([author, image.digest, repository, decisions])
  const hash = createHash('sha256').update(facts).digest('hex')
  const head: VexHead = {
    ...{ id: `https://${annotationPrefix}/vex/images/${image.digest}/${hash}`, serial: uuidOf(hash), author },
    ...{ timestamp: `${newestOf(decisions)}Z`, digest: image.digest, repository },
  }
  return JSON.stringify(format === 'openvex' ? writeOpenVex(head, decisions) : writeCycloneDxVex(head, decisions))
}

/** Times in canonical form sort as text, but for their fractions: those of one second are as good as equal. */
const newestOf = (decisions: readonly ImageDecision[]) =>
  decisions
    .map(({ decidedAt }) => decidedAt)
    .sort()
    .at(-1)!

/** A UUID of version 8 (RFC 9562, section 5.8), from a hash. */
const uuidOf = (hash: string): string =>
  [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`, `8${hash.slice(17, 20)}`, hash.slice(20, 32)].join(
    '-',
  )
