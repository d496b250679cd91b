/**
 * Collects the signers of running images by repository (docs/contract.md#policies). Results are added one at a time, in
 * digest order, and only their signers are kept.
 */
import { createHash } from 'node:crypto'
import type { Attestation, Signature, SignatureVerdict } from '../attestations/index.ts'
import type { Slice } from '../event-loop/slices.ts'
import { normalRepository } from '../supply-chain/index.ts'
import { quoted } from '../text/yaml.ts'
import { type Authority, authorityOf, keyOf } from './authority.ts'
import { MAX_POLICY_BYTES, tooLarge } from './limits.ts'
import { expandedName, isPlainName, repositoryOfReference, writtenNames } from './repository.ts'

/** Running containers with the same digest and reference. */
export interface Running {
  readonly digest: string
  /** The image as the pod spec writes it. */
  readonly reference: string
  /** As the inventory has it. */
  readonly repository: string | null
  /** Null if the digest was not checked. */
  readonly verdict: SignatureVerdict | null
}

/** Running containers of one other namespace with the same digest and reference. */
export interface Elsewhere extends Omit<Running, 'repository'> {
  readonly namespace: string
}

/** The part of a result that policies depend on; the lists hold only verified entries. */
export interface SignatureResult {
  readonly verdict: SignatureVerdict
  readonly signatures: readonly Signature[]
  readonly attestations: readonly Attestation[]
}

/** Types of SLSA provenance that a policy may require, in order of preference. */
export const PREDICATES = ['https://slsa.dev/provenance/v1', 'https://slsa.dev/provenance/v0.2'] as const

const NOT_CHECKED = 'not checked'
const NO_PEM = 'only a key whose PEM is unknown'
/** Bytes of policy text for an authority beside its own text, estimated. */
const AUTHORITY_BYTES = 64
/** Copies of the text of an authority: its key, its fields, its comparison text and its map entry. */
const AUTHORITY_COPIES = 4
/**
 * Estimated bytes of a container beside its texts, of a signer of a digest, and of the mark of an attesting authority.
 */
const CONTAINER_BYTES = 512
const SIGNED_BYTES = 160
const MARK_BYTES = 100

/** A repository of running images. */
export class Repository {
  /** Docker Hub repositories under one name; the reference itself if it names no repository. */
  readonly name: string
  /** Whether a policy can name it. */
  readonly isNamed: boolean
  /** Spellings of the inventory, or of the reference where the inventory has none. */
  readonly given = new Set<string>()
  /** Spellings of pod specs. */
  readonly spelled = new Set<string>()
  /** The first digest, in digest order, that keeps the repository from being covered, and the reason. */
  failure: { readonly at: string; readonly reason: string } | null = null
  /** Signers with the digests they signed; empty once the repository has failed. */
  readonly signed = new Map<Authority, string[]>()
  /** For each predicate and digest, the marks of the authorities that attested it. */
  readonly attested: readonly (readonly string[])[][] = PREDICATES.map(() => [])

  constructor(name: string, isNamed = true) {
    this.name = name
    this.isNamed = isNamed && isPlainName(name)
  }

  fail(at: string, reason: string): void {
    if (this.isDecided(at)) return
    this.failure = { at, reason }
    this.signed.clear()
    for (const attested of this.attested) attested.length = 0
  }

  /** Whether a result for the digest at `at` cannot change the coverage or its reason. */
  isDecided(at: string): boolean {
    return this.failure !== null && this.failure.at <= at
  }
}

export class Coverage {
  readonly #repositories = new Map<string, Repository>()
  readonly #byDigest = new Map<string, Set<Repository>>()
  readonly #authorities = new Map<string, { readonly authority: Authority; readonly mark: string }>()
  /** Digests that only other namespaces run, each with the first of these namespaces. */
  readonly #elsewhere = new Map<string, string>()
  readonly #namespaces = new Set<string>()
  #authorityBytes = 0
  #otherBytes = 0

  /** Estimated bytes in memory, rather too many than too few. */
  get estimatedBytes(): number {
    return this.#otherBytes + AUTHORITY_COPIES * this.#authorityBytes
  }

  add({ digest, reference, repository, verdict }: Running): void {
    this.#otherBytes += CONTAINER_BYTES + 2 * (reference.length + (repository?.length ?? 0))
    const spelled = repositoryOfReference(reference)
    const given = repository ?? spelled
    const name = normalRepository(undefined, given)
    // A repository name and a bare reference can have the same text.
    const key = JSON.stringify([name, name === undefined ? reference.trim() : ''])
    const one = this.#repositories.get(key) ?? new Repository(name ?? reference.trim(), name !== undefined)
    this.#repositories.set(key, one)
    if (given !== '') one.given.add(given)
    if (spelled !== '') one.spelled.add(spelled)
    this.#count(one, digest, verdict)
  }

  /**
   * Adds containers of other namespaces that the policies bind too, because policies without a namespace match them by
   * name. They count for the repository whose name they share, whatever the inventory says.
   */
  async addElsewhere(rows: Iterable<Elsewhere>, slice: Slice): Promise<void> {
    const byName = this.#byWrittenName()
    const bound: [Repository, Elsewhere][] = []
    for (const row of rows) {
      const spelled = repositoryOfReference(row.reference)
      for (const one of (isPlainName(spelled) && byName.get(expandedName(spelled))) || []) bound.push([one, row])
      if (slice.isOver) await slice.next()
    }
    for (const [, { digest, namespace }] of bound) {
      this.#namespaces.add(namespace)
      const first = this.#elsewhere.get(digest)
      if (!this.#byDigest.has(digest) && (first === undefined || namespace < first))
        this.#elsewhere.set(digest, namespace)
    }
    for (const [one, { digest, verdict, reference }] of bound) {
      this.#otherBytes += CONTAINER_BYTES + reference.length
      this.#count(one, digest, verdict)
    }
  }

  /** The last segments of the names that pods write, or may write, for these images. */
  lastSegments(): string[] {
    return [...new Set([...this.#byWrittenName().keys()].map((name) => name.slice(name.lastIndexOf('/') + 1)))]
  }

  /** The other namespaces that the policies bind too. */
  get namespaces(): readonly string[] {
    return [...this.#namespaces].sort()
  }

  get repositories(): Iterable<Repository> {
    return this.#repositories.values()
  }

  /** The digests whose results are needed, in order. */
  async digests(slice: Slice): Promise<string[]> {
    const all: string[] = []
    for (const [digest, repositories] of this.#byDigest) {
      const at = this.#sortKeyOf(digest)
      if ([...repositories].some((one) => !one.isDecided(at))) all.push(digest)
      if (slice.isOver) await slice.next()
    }
    return all.sort()
  }

  /**
   * Adds the result of a digest; null if it has none any more. Throws 422 when the signers exceed the size of policies.
   */
  addResult(digest: string, result: SignatureResult | null): void {
    const at = this.#sortKeyOf(digest)
    const repositories = [...this.#of(digest)].filter((one) => !one.isDecided(at))
    const authorities = result?.verdict === 'verified' ? authoritiesOf(result.signatures) : null
    if (authorities === null || authorities.size === 0) {
      const reason = authorities ? NO_PEM : (result?.verdict ?? NOT_CHECKED)
      for (const one of repositories) this.#fail(one, digest, reason)
      return
    }
    // A repository that has failed needs only its reason.
    const covered = repositories.filter(({ failure }) => failure === null)
    if (covered.length === 0) return
    const signers = [...authorities].map(([key, authority]) => this.#interned(key, authority))
    const attested = PREDICATES.map((predicate) =>
      [...authoritiesOf(result!.attestations.filter(({ predicateType }) => predicateType === predicate)).keys()].map(
        (key) => this.#markOf(key),
      ),
    )
    for (const one of covered) {
      this.#otherBytes +=
        SIGNED_BYTES * signers.length + MARK_BYTES * attested.reduce((sum, marks) => sum + marks.length, 0)
      for (const signer of signers) {
        const digests = one.signed.get(signer)
        if (digests) digests.push(digest)
        else one.signed.set(signer, [digest])
      }
      for (const [i, keys] of attested.entries()) one.attested[i]!.push(keys)
    }
  }

  #count(one: Repository, digest: string, verdict: SignatureVerdict | null): void {
    this.#byDigest.set(digest, this.#of(digest).add(one))
    if (verdict !== 'verified') this.#fail(one, digest, verdict ?? NOT_CHECKED)
  }

  #fail(one: Repository, digest: string, reason: string): void {
    const namespace = this.#elsewhere.get(digest)
    one.fail(this.#sortKeyOf(digest), namespace === undefined ? reason : `${reason}, in namespace ${quoted(namespace)}`)
  }

  /** Digests of the requested scope sort before those of other namespaces. */
  #sortKeyOf(digest: string): string {
    return this.#elsewhere.has(digest) ? `~${digest}` : digest
  }

  #byWrittenName(): Map<string, Repository[]> {
    const byName = new Map<string, Repository[]>()
    for (const one of this.repositories) {
      for (const name of writtenNames(one)) {
        const same = byName.get(name)
        if (same) same.push(one)
        else byName.set(name, [one])
      }
    }
    return byName
  }

  #of(digest: string): Set<Repository> {
    return this.#byDigest.get(digest) ?? new Set()
  }

  #interned(key: string, authority: Authority): Authority {
    const known = this.#authorities.get(key)
    if (known) return known.authority
    this.#authorityBytes += Buffer.byteLength(key) + AUTHORITY_BYTES
    if (this.#authorityBytes > MAX_POLICY_BYTES) throw tooLarge()
    this.#authorities.set(key, { authority, mark: markOf(key) })
    return authority
  }

  /** Most attesting authorities also sign. Hashing is the most expensive step here, so known marks are reused. */
  #markOf(key: string): string {
    return this.#authorities.get(key)?.mark ?? markOf(key)
  }
}

/** A short substitute for the key of an authority: attestations have many, and few of them are in a policy. */
export const markOf = (key: string): string => createHash('sha256').update(key).digest('base64')

function authoritiesOf(entries: readonly (Signature | Attestation)[]): Map<string, Authority> {
  const all = new Map<string, Authority>()
  for (const entry of entries) {
    const authority = entry.verified ? authorityOf(entry) : null
    if (authority) all.set(keyOf(authority), authority)
  }
  return all
}
