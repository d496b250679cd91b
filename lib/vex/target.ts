/** The image or the package that a component of a VEX document names (docs/contract.md#decisions). */
import { RANK } from '../decisions/words.ts'
import { isDigest } from '../images/digest.ts'
import { normalRepository } from '../supply-chain/repository.ts'
import type { Reason } from './parsed.ts'
import { type Purl, parsePurl } from './purl.ts'

/** The identifiers of a component, in any format. */
export interface Identity {
  readonly id: string | null
  readonly purl: string | null
  /** Algorithms and hexadecimal digits. */
  readonly hashes: readonly (readonly [string, string])[]
}

/** Columns of a decision. Without an image or a repository the decision holds for the package wherever it is. */
export interface Target {
  readonly scope_rank: number
  readonly image_digest?: string
  /** Of the platform of an index. */
  readonly image_arch?: string
  readonly repository?: string
  readonly package_purl?: string
  readonly package_name?: string
}

export type TargetOrReason = Target | { readonly reason: Reason }

const IMAGE_TYPES = ['oci', 'docker']

/** The target of a product: an image by digest, all images of a repository, or a package. */
export function targetOf({ id, purl: text, hashes }: Identity): TargetOrReason {
  const purlText = text ?? (id?.startsWith('pkg:') ? id : null)
  const purl = purlText === null ? null : parsePurl(purlText)
  if (purlText !== null && purl === null) return { reason: 'product_not_known' }
  if (purl !== null && !IMAGE_TYPES.includes(purl.type)) return { scope_rank: RANK.all, package_purl: purlText! }
  const digest = [purl?.version, purl === null ? id : null, ...hashes.map(digestOf)]
    .map((one) => one?.toLowerCase())
    .find(isDigest)
  if (digest !== undefined) {
    const arch = purl?.qualifiers.get('arch')?.toLowerCase()
    return { scope_rank: RANK.image, image_digest: digest, ...(arch && { image_arch: arch }) }
  }
  if (purl === null) return { reason: 'product_not_known' }
  const repository = repositoryOf(purl)
  return repository === undefined ? { reason: 'product_without_digest' } : { scope_rank: RANK.image, repository }
}

const digestOf = ([algorithm, content]: readonly [string, string]) =>
  `${algorithm.toLowerCase().replace('sha-', 'sha')}:${content}`

/** The repository of all images that a package URL names: one with a tag, a version or a platform names fewer. */
function repositoryOf({ type, path, version, qualifiers }: Purl): string | undefined {
  const url = qualifiers.get('repository_url')?.replace(/^https?:\/\//, '')
  // In the type `docker` it is the registry alone.
  if (type !== 'oci' || version !== null || !url || qualifiers.size > 1) return undefined
  const name = path.slice(path.lastIndexOf('/') + 1)
  return normalRepository(undefined, url.slice(url.lastIndexOf('/') + 1) === name ? url : `${url}/${name}`)
}

/** The columns of a package inside an image: by its package URL, or by a plain name. */
export function packageOf(
  { id, purl }: Identity,
  name: string | null,
): { package_purl?: string; package_name?: string } | null {
  const text = purl ?? (id?.startsWith('pkg:') ? id : null)
  if (text !== null) return parsePurl(text) === null ? null : { package_purl: text }
  const plain = name ?? id
  return plain === null || plain === '' || /[:@]/.test(plain.slice(1)) ? null : { package_name: plain }
}
