/** Converts the body of a result to the document that `store_attestation` takes. */

import { Slice } from '../event-loop/slices.ts'
import { exactJson } from '../json/exact-integers.ts'
import { countUnreadable } from '../supply-chain/index.ts'
import { truncateToBytes } from '../text/utf8.ts'
import { storedFormat } from '../wire-names/index.ts'
import { checkContract, checkVerifiedEntries, contradictionFault, type PostedEntry } from './contract.ts'
import type { Attestation, Signature, SignatureVerdict } from './entry.ts'
import { parseResult } from './json.ts'
import { MAX_BYTES, type PostedProvenance, type PostedSignature, type PostedStatement } from './posted.ts'
import { isKnownReason, NO_SIGNER_IDENTITY, UNRECOGNISED } from './reasons.ts'
import { redact } from './redact.ts'
import { summaryOf } from './summary.ts'
import { contradiction, derivedVerdict, type SignatureStatus } from './verdict.ts'

const UNNAMED_DETAIL = 'sent as verified without naming its signer'

type Text = string | null | undefined

/** A result that is ready to be stored. */
export interface Prepared {
  /** The argument of `store_attestation`, without `post`. */
  readonly document: Readonly<Record<string, string | null>>
  /** Unknown reason codes, each as often as it was sent. */
  readonly unknownReasons: readonly string[]
  /** Times that were sent and could not be read. */
  readonly unreadableTimes: number
}

/**
 * Reads a result for the image `digest`; long ones are processed in slices. `now` is Unix time in milliseconds.
 * @throws HttpError 400 for JSON that is malformed or of the wrong type, 413 for too long a list, 422 for a broken
 * contract
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
  checkVerifiedEntries(posted, (entry) => isSentVerified(entry) && namesSigner(entry))

  const statuses = sent.signatures.map((entry) => statusOf(entry, errors.get(entry)))
  const isDowngraded = [...errors.keys()].some((entry) => isSentVerified(entry) && !namesSigner(entry))
  const isDerived = isDowngraded && posted.verdict === 'verified' && !statuses.some((one) => one.verified)
  const effective: { verdict: SignatureVerdict; reason: string | undefined } = isDerived
    ? derivedVerdict(statuses)
    : { verdict: posted.verdict, reason }
  const conflict = contradiction(effective.verdict, statuses)
  if (conflict !== null) throw contradictionFault(conflict)
  const signatures = await eachInSlices(sent.signatures, (entry) => toSignature(entry, errors.get(entry)))
  const attestations = await eachInSlices(sent.attestations, (entry) => toAttestation(entry, errors.get(entry)))
  return {
    document: {
      digest,
      repository: posted.repository,
      verdict: effective.verdict,
      reason: effective.reason ?? null,
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

/** Redacting takes time proportional to the text, so a body full of details is spread over several slices. */
async function eachInSlices<From, To>(entries: readonly From[], convert: (entry: From) => To): Promise<To[]> {
  const slice = new Slice()
  const all: To[] = []
  for (const entry of entries) {
    if (slice.isOver) await slice.next()
    all.push(convert(entry))
  }
  return all
}

const isSentVerified = (entry: PostedEntry) => entry.verified === true

const isBlank = (text: Text) => !text || text.trim() === ''

/** A key needs its fingerprint; any other signer its issuer and subject alternative name. */
const namesSigner = ({ signer_kind, key_fingerprint, issuer, san }: PostedEntry) =>
  signer_kind === 'key' ? !isBlank(key_fingerprint) : !isBlank(issuer) && !isBlank(san)

/** The status that an entry counts with: one that names no signer is unverified, whatever it was sent as. */
function statusOf(entry: PostedEntry, error: string | undefined): SignatureStatus {
  if (!isSentVerified(entry)) return { verified: false, error }
  return namesSigner(entry) ? { verified: true, error } : { verified: false, error: NO_SIGNER_IDENTITY }
}

/** Keys in wire order. JSON leaves undefined values out. */
function toSignature(entry: PostedSignature, error: string | undefined): Signature {
  const { verified: isVerified, error: stored } = statusOf(entry, error)
  const isUnnamed = isSentVerified(entry) && !isVerified
  return {
    format: storedFormat(truncateToBytes(entry.format, MAX_BYTES.format)),
    source: cut('source', entry.source),
    verified: isVerified,
    error: stored,
    detail: isUnnamed ? UNNAMED_DETAIL : redact(entry.detail ?? '') || undefined,
    subject: cut('subject', entry.subject),
    ...(isVerified ? identityOf(entry) : {}),
    keyHint: cut('key_hint', entry.key_hint),
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

function toAttestation(entry: PostedStatement, error: string | undefined): Attestation {
  const signed = toSignature(entry, error)
  return {
    ...signed,
    predicateType: truncateToBytes(entry.predicate_type, MAX_BYTES.predicate_type),
    payloadSha256: cut('payload_sha256', entry.payload_sha256),
    provenance: signed.verified ? provenanceOf(entry.provenance ?? {}) : undefined,
  }
}

function provenanceOf(posted: PostedProvenance): Attestation['provenance'] {
  const provenance = {
    builderId: posted.builder_id || undefined,
    buildType: cut('build_type', posted.build_type),
    sourceRepo: posted.source_repo || undefined,
    sourceCommit: posted.source_commit || undefined,
    sourceRef: posted.source_ref || undefined,
  }
  return Object.values(provenance).some((text) => text !== undefined) ? provenance : undefined
}

const cut = (key: keyof typeof MAX_BYTES, text: Text) => (text ? truncateToBytes(text, MAX_BYTES[key]) : undefined)
