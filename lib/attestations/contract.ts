/**
 * Checks of a posted result beyond its types (docs/contract.md#signatures-and-attestations). Each fault is 422 and
 * names the field; the order of the checks is part of the contract.
 */
import { HttpError } from '../errors.ts'
import { DIGEST_RULE, isDigest } from '../images/index.ts'
import { isAhead, MAX_SKEW_SECONDS, SCHEMA_VERSION } from '../supply-chain/index.ts'
import { isLongerThan } from '../text/utf8.ts'
import { SIGNER_KINDS, type SignatureVerdict, VERDICTS } from './entry.ts'
import {
  MAX_BYTES,
  type PostedProvenance,
  type PostedResult,
  type PostedSignature,
  type PostedStatement,
} from './posted.ts'

export type PostedEntry = PostedSignature | PostedStatement

/**
 * Control characters, halves of surrogate pairs, line separators of Unicode, and characters that change the direction
 * of text or are invisible.
 */
const FORBIDDEN = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u
/** Characters that PostgreSQL cannot store. A PEM key may contain line ends. */
const UNSTORABLE = /[\0\p{Cs}]/u
const TOKEN = /^[a-z0-9_:.-]{1,128}$/
const PUBLIC_KEY = /^-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\r\n]+-----END PUBLIC KEY-----$/

const WHOLE_IDENTITY = ['issuer', 'san', 'key_name', 'key_fingerprint'] as const
const WHOLE_PROVENANCE = ['builder_id', 'source_repo', 'source_commit', 'source_ref'] as const

const contractFault = (field: string, rule: string) => new HttpError(422, `${field}: ${rule}`)

/** Signatures, then attestations, each with its position in the body. */
function* entriesOf({ signatures, attestations }: PostedResult): Generator<[PostedEntry, string]> {
  for (const [i, one] of signatures?.entries() ?? []) yield [one, `signatures[${i}]`]
  for (const [i, one] of attestations?.entries() ?? []) yield [one, `attestations[${i}]`]
}

const provenanceOf = (entry: PostedEntry): PostedProvenance => ('provenance' in entry && entry.provenance) || {}

/** The checks that do not depend on which entries name a signer. */
export function checkContract(
  posted: PostedResult,
  digest: string,
  now: number,
): asserts posted is PostedResult & { verdict: SignatureVerdict } {
  checkCharacters(posted)
  if (posted.schema_version !== SCHEMA_VERSION) throw contractFault('schema_version', `expected ${SCHEMA_VERSION}`)
  if (posted.digest !== digest) throw contractFault('digest', 'expected the digest of the path')
  if (!VERDICTS.includes(posted.verdict as SignatureVerdict))
    throw contractFault('verdict', `expected one of ${VERDICTS.join(', ')}`)
  if (isAhead(posted.checked_at, now)) throw contractFault('checked_at', `more than ${MAX_SKEW_SECONDS} seconds ahead`)
  if (posted.repository === '') throw contractFault('repository', 'empty')
  checkLength('repository', posted.repository, '')
  checkToken('reason', posted.reason)
  for (const [entry, where] of entriesOf(posted)) checkToken(`${where}.error`, entry.error)
  checkToken('trust_root', posted.trust_root)
  checkToken('signed_via', posted.signed_via)
  if (posted.signed_digest && !isDigest(posted.signed_digest)) throw contractFault('signed_digest', DIGEST_RULE)
  for (const [{ signer_kind: kind }, where] of entriesOf(posted))
    if (kind && !SIGNER_KINDS.some((one) => one === kind))
      throw contractFault(`${where}.signer_kind`, `expected one of ${SIGNER_KINDS.join(', ')}`)
}

/** Checks all texts in the order of the schema. */
function checkCharacters(value: object, path = ''): void {
  for (const [key, member] of Object.entries(value)) {
    const field = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    if (typeof member === 'object' && member !== null) checkCharacters(member, field)
    else if (typeof member === 'string' && (key === 'key_pem' ? UNSTORABLE : FORBIDDEN).test(member))
      throw contractFault(field, 'a control, line-break or bidi character, or half a surrogate pair')
  }
}

function checkToken(field: string, token: string | null | undefined): void {
  if (token && !TOKEN.test(token)) throw contractFault(field, `expected ${TOKEN.source.slice(1, -1)}`)
}

/**
 * Checks the signer and the provenance of verified entries: trust policies match them, so they are stored whole or
 * refused.
 */
export function checkVerifiedEntries(posted: PostedResult, isVerified: (entry: PostedEntry) => boolean): void {
  for (const [entry, where] of entriesOf(posted)) {
    if (!isVerified(entry)) continue
    for (const key of WHOLE_IDENTITY) checkLength(key, entry[key], `${where}.`)
    if (entry.key_pem) checkKey(`${where}.key_pem`, entry.key_pem.trim())
    const provenance = provenanceOf(entry)
    for (const key of WHOLE_PROVENANCE) checkLength(key, provenance[key], `${where}.provenance.`)
  }
}

function checkLength(key: keyof typeof MAX_BYTES, text: string | null | undefined, where: string): void {
  if (text && isLongerThan(text, MAX_BYTES[key]))
    throw contractFault(where + key, `longer than ${MAX_BYTES[key]} bytes`)
}

function checkKey(field: string, pem: string): void {
  if (isLongerThan(pem, MAX_BYTES.key_pem)) throw contractFault(field, `longer than ${MAX_BYTES.key_pem} bytes`)
  if (!PUBLIC_KEY.test(pem)) throw contractFault(field, 'expected a public key in PEM')
}

/** The fault of a verdict that its signatures contradict. */
export const contradictionFault = (reason: string): HttpError => contractFault('verdict', reason)
