/** From the body of a result to the document that `store_attestation` takes. */
import { exactJson } from '../json/exact-integers.ts'
import { Slice } from '../process/event-loop.ts'
import { countUnreadable, storedFormat } from '../supply-chain/index.ts'
import { truncateToBytes } from '../text/utf8.ts'
import { checkContract, checkWhole, contradicted, type PostedEntry } from './contract.ts'
import type { Signature, Statement, Verdict } from './entry.ts'
import { parseResult } from './json.ts'
import { MAX_BYTES, type PostedProvenance, type PostedSignature, type PostedStatement } from './posted.ts'
import { isKnownReason, NO_SIGNER_IDENTITY, UNRECOGNISED } from './reasons.ts'
import { redact } from './redact.ts'
import { summaryOf } from './summary.ts'
import { type Checked, contradiction, derivedVerdict } from './verdict.ts'

const UNNAMED_DETAIL = 'sent as verified without naming its signer'

type Text = string | null | undefined

/** What becomes of a body. */
export interface Prepared {
  /** For `store_attestation`, all but `post`. */
  readonly document: Readonly<Record<string, string | null>>
  /** Reason codes that are not known, each as often as it was sent. */
  readonly unknownReasons: readonly string[]
  /** Times that were sent and could not be read. */
  readonly unreadableTimes: number
}

/**
 * Reads a result for the image of `digest`, in slices where it is long; `now` is Unix time in milliseconds.
 * @throws HttpError 400 for what is not JSON or of another type, 413 for too long a list, 422 for what breaks the contract
 */
export async function prepareResult(bytes: Buffer, digest: string, now: number): Promise<Prepared> {
  const posted = parseResult(bytes)
  checkContract(posted, digest, now)
  const unknownReasons: string[] = []
  const reasonOf = (code: Text) => {
    if (!code || isKnownReason(code)) return code || undefined
    unknownReasons.push(code)
    return UNRECOGNISED
  }
  const reason = reasonOf(posted.reason)
  const errors = new Map<PostedEntry, string | undefined>()
  const sent = { signatures: posted.signatures ?? [], attestations: posted.attestations ?? [] }
  for (const entry of [...sent.signatures, ...sent.attestations]) errors.set(entry, reasonOf(entry.error))
  checkWhole(posted, (entry) => isSentVerified(entry) && isNamed(entry))

  const checked = sent.signatures.map((entry) => checkedOf(entry, errors.get(entry)))
  const isDowngraded = [...errors.keys()].some((entry) => isSentVerified(entry) && !isNamed(entry))
  const isDerived = isDowngraded && posted.verdict === 'verified' && !checked.some((one) => one.verified)
  const judged: { verdict: Verdict; reason: string | undefined } = isDerived
    ? derivedVerdict(checked)
    : { verdict: posted.verdict, reason }
  const why = contradiction(judged.verdict, checked)
  if (why !== null) throw contradicted(why)
  const signatures = await eachInSlices(sent.signatures, (entry) => signedOf(entry, errors.get(entry)))
  const attestations = await eachInSlices(sent.attestations, (entry) => statementOf(entry, errors.get(entry)))
  return {
    document: {
      digest,
      repository: posted.repository,
      verdict: judged.verdict,
      reason: judged.reason ?? null,
      trust_root: posted.trust_root || null,
      signed_via: posted.signed_via || null,
      signed_digest: posted.signed_digest || null,
      signatures: exactJson(signatures),
      attestations: exactJson(attestations),
      ...summaryOf(signatures, attestations),
      checked_at: posted.checked_at,
    },
    unknownReasons,
    unreadableTimes: countUnreadable(...[...errors.keys()].map((entry) => entry.integrated_time)),
  }
}

/** A detail takes as long as its text: a body full of them takes several slices. */
async function eachInSlices<From, To>(entries: readonly From[], made: (entry: From) => To): Promise<To[]> {
  const slice = new Slice()
  const all: To[] = []
  for (const entry of entries) {
    if (slice.isOver) await slice.next()
    all.push(made(entry))
  }
  return all
}

const isSentVerified = (entry: PostedEntry) => entry.verified === true

const isBlank = (text: Text) => !text || text.trim() === ''

/** A key by its fingerprint, all else by issuer and subject alternative name. */
const isNamed = ({ signer_kind, key_fingerprint, issuer, san }: PostedEntry) =>
  signer_kind === 'key' ? !isBlank(key_fingerprint) : !isBlank(issuer) && !isBlank(san)

/** What an entry counts as: one that names nobody is unverified, whatever it was sent as. */
function checkedOf(entry: PostedEntry, error: string | undefined): Checked {
  if (!isSentVerified(entry)) return { verified: false, error }
  return isNamed(entry) ? { verified: true, error } : { verified: false, error: NO_SIGNER_IDENTITY }
}

/** Keys in wire order; what is not known is undefined, which JSON leaves out. */
function signedOf(entry: PostedSignature, error: string | undefined): Signature {
  const { verified: isVerified, error: stored } = checkedOf(entry, error)
  const isUnnamed = isSentVerified(entry) && !isVerified
  return {
    format: storedFormat(truncateToBytes(entry.format, MAX_BYTES.format)),
    source: kept('source', entry.source),
    verified: isVerified,
    error: stored,
    detail: isUnnamed ? UNNAMED_DETAIL : redact(entry.detail ?? '') || undefined,
    subject: kept('subject', entry.subject),
    ...(isVerified ? identityOf(entry) : {}),
    keyHint: kept('key_hint', entry.key_hint),
    integratedTime: entry.integrated_time ? `${entry.integrated_time}Z` : undefined,
    tlogIndex: entry.tlog_index ?? undefined,
  }
}

function identityOf(entry: PostedSignature): Partial<Signature> {
  if (entry.signer_kind !== 'key') return { signerKind: 'keyless', issuer: entry.issuer!, san: entry.san! }
  const { key_name, key_fingerprint, key_pem } = entry
  const keyPem = key_pem?.trim().replace(/\r\n?/g, '\n') || undefined
  return { signerKind: 'key', keyName: key_name || undefined, keyFingerprint: key_fingerprint!, keyPem }
}

function statementOf(entry: PostedStatement, error: string | undefined): Statement {
  const signed = signedOf(entry, error)
  return {
    ...signed,
    predicateType: truncateToBytes(entry.predicate_type, MAX_BYTES.predicate_type),
    payloadSha256: kept('payload_sha256', entry.payload_sha256),
    provenance: signed.verified ? provenanceOf(entry.provenance ?? {}) : undefined,
  }
}

function provenanceOf({
  builder_id,
  build_type,
  source_repo,
  source_commit,
  source_ref,
}: PostedProvenance): Statement['provenance'] {
  const provenance = {
    builderId: builder_id || undefined,
    buildType: kept('build_type', build_type),
    sourceRepo: source_repo || undefined,
    sourceCommit: source_commit || undefined,
    sourceRef: source_ref || undefined,
  }
  return Object.values(provenance).some((text) => text !== undefined) ? provenance : undefined
}

const kept = (key: keyof typeof MAX_BYTES, text: Text) => (text ? truncateToBytes(text, MAX_BYTES[key]) : undefined)
