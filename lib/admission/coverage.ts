/**
 * What running images are signed by, repository by repository (interop-supply-chain, section 4, planning 1 and 2). Results come one at a time,
 * in the order of the digests, and all that stays of one is who signed it.
 */
import { createHash } from 'node:crypto'
import type { Signature, Statement, Verdict } from '../attestations/index.ts'
import type { Slice } from '../process/event-loop.ts'
import { normalRepository } from '../supply-chain/index.ts'
import { quoted } from '../text/yaml.ts'
import { type Authority, authorityOf, keyOf } from './authority.ts'
import { MAX_POLICY_BYTES, tooLarge } from './limits.ts'
import { expandedName, isPlainName, repositoryOfReference, writtenNames } from './repository.ts'

/** Running containers that are alike. */
export interface Running {
  readonly digest: string
  /** The image as the pod spec has it. */
  readonly reference: string
  /** As the inventory has it. */
  readonly repository: string | null
  /** Null where the digest was not checked. */
  readonly verdict: Verdict | null
}

/** Running containers of another namespace that are alike. */
export interface Elsewhere extends Omit<Running, 'repository'> {
  readonly namespace: string
}

/** What of a result decides; only what verified is in the lists. */
export interface Result {
  readonly verdict: Verdict
  readonly signatures: readonly Signature[]
  readonly attestations: readonly Statement[]
}

/** SLSA provenance that a policy may require, the one that is preferred first. */
export const PREDICATES = ['https://slsa.dev/provenance/v1', 'https://slsa.dev/provenance/v0.2'] as const

const NOT_CHECKED = 'not checked'
const NO_PEM = 'only a key whose PEM is unknown'
/** A policy spends more on an authority than its text. */
const AUTHORITY_BYTES = 64
/** Copies of the text of an authority: its key, its parts, the text it is compared by, and its place in a table. */
const AUTHORITY_COPIES = 4
/** A container beside its texts, a signer of a digest, and a mark of one that attested it. */
const CONTAINER_BYTES = 512
const SIGNED_BYTES = 160
const MARK_BYTES = 100

/** A repository of running images. */
export class Repository {
  /** Docker Hub's under one name; the reference where it names no repository. */
  readonly name: string
  /** Whether it is one that a policy can name. */
  readonly isNamed: boolean
  /** As the inventory, or else the reference, spells it. */
  readonly given = new Set<string>()
  /** As pod specs spell it. */
  readonly spelled = new Set<string>()
  /** The first of its digests, in their order, for which it is not covered, and why. */
  failure: { readonly at: string; readonly reason: string } | null = null
  /** Who signed, and which digests; of a repository that is covered so far. */
  readonly signed = new Map<Authority, string[]>()
  /** For each of the predicates, the marks of who attested it for each digest. */
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

  /** Whether nothing that is found for the digest of a place changes whether or why it is covered. */
  isDecided(at: string): boolean {
    return this.failure !== null && this.failure.at <= at
  }
}

export class Coverage {
  readonly #repositories = new Map<string, Repository>()
  readonly #byDigest = new Map<string, Set<Repository>>()
  readonly #authorities = new Map<string, { readonly authority: Authority; readonly mark: string }>()
  /** Digests that other namespaces alone run, and the first of these. */
  readonly #elsewhere = new Map<string, string>()
  readonly #namespaces = new Set<string>()
  #authorityBytes = 0
  #otherBytes = 0

  /** Bytes that this comes to in memory, roughly and rather too many. */
  get heldBytes(): number {
    return this.#otherBytes + AUTHORITY_COPIES * this.#authorityBytes
  }

  add({ digest, reference, repository, verdict }: Running): void {
    this.#otherBytes += CONTAINER_BYTES + 2 * (reference.length + (repository?.length ?? 0))
    const spelled = repositoryOfReference(reference)
    const given = repository ?? spelled
    const name = normalRepository(undefined, given)
    // The same text may be the name of one and the reference of the other.
    const key = JSON.stringify([name, name === undefined ? reference.trim() : ''])
    const one = this.#repositories.get(key) ?? new Repository(name ?? reference.trim(), name !== undefined)
    this.#repositories.set(key, one)
    if (given !== '') one.given.add(given)
    if (spelled !== '') one.spelled.add(spelled)
    this.#count(one, digest, verdict)
  }

  /**
   * Adds containers of other namespaces that policies without a namespace bind, too: those that are written as one that was added. They count
   * for its repository, whatever the inventory calls them.
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

  /** The last parts of the names that pods write, or may write, for these images. */
  lastSegments(): string[] {
    return [...new Set([...this.#byWrittenName().keys()].map((name) => name.slice(name.lastIndexOf('/') + 1)))]
  }

  /** The other namespaces that policies without a namespace bind, too. */
  get namespaces(): readonly string[] {
    return [...this.#namespaces].sort()
  }

  get repositories(): Iterable<Repository> {
    return this.#repositories.values()
  }

  /** The digests of which the results are needed, in their order. */
  async digests(slice: Slice): Promise<string[]> {
    const all: string[] = []
    for (const [digest, repositories] of this.#byDigest) {
      const at = this.#placeOf(digest)
      if ([...repositories].some((one) => !one.isDecided(at))) all.push(digest)
      if (slice.isOver) await slice.next()
    }
    return all.sort()
  }

  /** Notes the result of a digest: null where there is none any more. Throws 422 when the signers come to more than policies may. */
  note(digest: string, result: Result | null): void {
    const at = this.#placeOf(digest)
    const repositories = [...this.#of(digest)].filter((one) => !one.isDecided(at))
    const authorities = result?.verdict === 'verified' ? authoritiesOf(result.signatures) : null
    if (authorities === null || authorities.size === 0) {
      const reason = authorities ? NO_PEM : (result?.verdict ?? NOT_CHECKED)
      for (const one of repositories) this.#fail(one, digest, reason)
      return
    }
    // What else is known of a repository that failed says nothing but why.
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

  #count(one: Repository, digest: string, verdict: Verdict | null): void {
    this.#byDigest.set(digest, this.#of(digest).add(one))
    if (verdict !== 'verified') this.#fail(one, digest, verdict ?? NOT_CHECKED)
  }

  #fail(one: Repository, digest: string, reason: string): void {
    const namespace = this.#elsewhere.get(digest)
    one.fail(this.#placeOf(digest), namespace === undefined ? reason : `${reason}, in namespace ${quoted(namespace)}`)
  }

  /** Digests that were asked for come before those of other namespaces. */
  #placeOf(digest: string): string {
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

  /** Who attests has mostly signed: to make a mark takes longer than all else that is done with an attestation. */
  #markOf(key: string): string {
    return this.#authorities.get(key)?.mark ?? markOf(key)
  }
}

/** As good as the key of an authority, and short: those of attestations are many, and hardly any is in a policy. */
export const markOf = (key: string): string => createHash('sha256').update(key).digest('base64')

function authoritiesOf(entries: readonly (Signature | Statement)[]): Map<string, Authority> {
  const all = new Map<string, Authority>()
  for (const entry of entries) {
    const authority = entry.verified ? authorityOf(entry) : null
    if (authority) all.set(keyOf(authority), authority)
  }
  return all
}
