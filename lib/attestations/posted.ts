/**
 * The body of POST /images/{digest}/attestation (docs/contract.md#signatures-and-attestations). The schema
 * checks types only, and a wrong one answers 400; `checkContract` checks the rest.
 */
import { z } from 'zod'
import { listOf } from '../http/request/first-fault.ts'
import { DIGEST_PATTERN } from '../images/digest.ts'
import { documentedAs } from '../openapi/declare.ts'
import { instant, optionalFlag, optionalInstant, optional as optionalOf, schemaVersion } from '../supply-chain/index.ts'
import { SIGNER_KINDS, VERDICTS } from './entry.ts'

export const MAX_SIGNATURES = 32
export const MAX_ATTESTATIONS = 64

/** The characters that texts of results may have, as a pattern for the OpenAPI schema; `checkContract` enforces it. */
const PLAIN = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff]*$'
const TOKEN_OR_EMPTY = '^[a-z0-9_:.-]{0,128}$'
const PUBLIC_KEY_OR_EMPTY = '^$|^\\s*-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\\r\\n]+-----END PUBLIC KEY-----\\s*$'

const plain = z.string().meta({ pattern: PLAIN })
const optional = plain.nullish()
const token = z.string().meta({ pattern: TOKEN_OR_EMPTY }).nullish()

/** Where a double does not hold the integer exactly, its digits are read again from the text. */
const int64 = documentedAs(
  z.custom<number>((value) => Number.isInteger(value), 'Invalid input: expected int64'),
  { type: 'integer', format: 'int64' },
)

/**
 * Longest texts, in bytes. In a verified entry, fields that identify the signer are stored whole or the result is
 * refused; all other texts are cut.
 */
export const MAX_BYTES = {
  repository: 1024,
  format: 128,
  source: 128,
  subject: 192,
  issuer: 1024,
  san: 1024,
  key_name: 128,
  key_fingerprint: 64,
  key_pem: 4096,
  key_hint: 128,
  predicate_type: 1024,
  payload_sha256: 64,
  builder_id: 1024,
  build_type: 1024,
  source_repo: 1024,
  source_commit: 128,
  source_ref: 1024,
} as const

/** A text that is never cut in a verified entry: it is stored whole or the result is refused. */
const whole = (key: keyof typeof MAX_BYTES, more = '') =>
  z
    .string()
    .meta({ maxLength: MAX_BYTES[key], pattern: PLAIN })
    .describe(`At most ${MAX_BYTES[key]} bytes.${more}`)
    .nullish()

const TOKEN_RULE = '`[a-z0-9_:.-]{1,128}`'

const signed = {
  format: plain.describe('`cosign-bundle`, `signer-legacy` (or `cosign-legacy`), `bundle`, `cosign-legacy-att`, ...'),
  source: optional,
  verified: optionalFlag.describe('False where it is not there.'),
  error: token.describe(`A reason code: ${TOKEN_RULE}.`),
  detail: optional.describe('Stored without addresses and secrets, in 256 bytes.'),
  subject: optional.describe('The digest that it is bound to, where that is another one.'),
  signer_kind: z
    .string()
    .meta({ enum: [...SIGNER_KINDS, ''] })
    .nullish()
    .describe('`keyless` or `key`; absent is `keyless`.'),
  issuer: whole('issuer'),
  san: whole('san'),
  key_name: whole('key_name'),
  key_fingerprint: whole('key_fingerprint', ' SHA-256 of the key in DER, in hexadecimal digits.'),
  key_pem: z
    .string()
    .meta({ maxLength: MAX_BYTES.key_pem, pattern: PUBLIC_KEY_OR_EMPTY })
    .describe(`A public key in PEM, at most ${MAX_BYTES.key_pem} bytes.`)
    .nullish(),
  key_hint: optional,
  integrated_time: optionalInstant,
  tlog_index: optionalOf(int64),
}

const PostedProvenance = z
  .object({
    builder_id: whole('builder_id'),
    build_type: optional,
    source_repo: whole('source_repo'),
    source_commit: whole('source_commit'),
    source_ref: whole('source_ref'),
  })
  .meta({ id: 'PostedProvenance' })

export const PostedSignature = z.object(signed).meta({ id: 'PostedSignature' })
export const PostedStatement = z
  .object({ ...signed, predicate_type: plain, payload_sha256: optional, provenance: optionalOf(PostedProvenance) })
  .meta({ id: 'PostedStatement' })

export const PostedResult = z
  .object({
    schema_version: schemaVersion,
    digest: z.string().meta({ pattern: DIGEST_PATTERN }).describe('That of the path.'),
    repository: z
      .string()
      .meta({ minLength: 1, maxLength: MAX_BYTES.repository, pattern: PLAIN })
      .describe(`1 to ${MAX_BYTES.repository} bytes.`),
    checked_at: instant.describe('At most 60 seconds ahead.'),
    verdict: z
      .string()
      .meta({ enum: VERDICTS })
      .describe('`verified`, `key_signed`, `unsigned`, `invalid` or `unknown`; it must agree with the signatures.'),
    reason: token.describe(
      `A reason code: ${TOKEN_RULE}. What is not known here is stored as \`unrecognised_reason\`.`,
    ),
    trust_root: token.describe(`${TOKEN_RULE}: \`public-good\`, or \`custom:\` and 12 digits.`),
    signed_via: token.describe(`${TOKEN_RULE}: \`self\` or \`index\`.`),
    signed_digest: z
      .string()
      .meta({ pattern: `^$|${DIGEST_PATTERN}` })
      .nullish(),
    signatures: listOf(PostedSignature, MAX_SIGNATURES).nullish(),
    attestations: listOf(PostedStatement, MAX_ATTESTATIONS).nullish(),
  })
  .meta({
    id: 'PostedResult',
    description: 'Texts may hold no control, line-break or bidi character. Empty texts count as absent.',
  })

export type PostedProvenance = z.output<typeof PostedProvenance>
export type PostedSignature = z.output<typeof PostedSignature>
export type PostedStatement = z.output<typeof PostedStatement>
export type PostedResult = z.output<typeof PostedResult>
