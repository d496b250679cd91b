/**
 * Signatures and attestations as they are stored and answered (docs/contract.md#signatures-and-attestations). Unknown
 * values have no key.
 */
import { z } from 'zod'
import { documentedAs } from '../openapi/declare.ts'

export const VERDICTS = ['verified', 'key_signed', 'unsigned', 'invalid', 'unknown'] as const
export type SignatureVerdict = (typeof VERDICTS)[number]

export const verdict = z
  .enum(VERDICTS)
  .meta({ id: 'Verdict' })
  .describe(
    '`verified`: a signature verified, by any identity or key; always show it with the signer. `key_signed`: signed ' +
      'with a public key that was not given. `unsigned`: no signature, and every look-up answered. `invalid`: ' +
      'signatures exist and none verified. `unknown`: could not be checked; not the same as unsigned.',
  )

export const SIGNER_KINDS = ['keyless', 'key'] as const

const signer = {
  signerKind: z.enum(SIGNER_KINDS).optional(),
  issuer: z.string().optional().describe('Of a keyless signer: the OIDC issuer.'),
  san: z.string().optional().describe('Of a keyless signer: the subject alternative name of its certificate.'),
  keyName: z.string().optional(),
  keyFingerprint: z.string().optional().describe('SHA-256 of the public key in DER, in hexadecimal digits.'),
  keyPem: z.string().optional(),
}

const signed = {
  format: z.string(),
  source: z.string().optional(),
  verified: z.boolean(),
  error: z.string().optional().describe('Why it did not verify.'),
  detail: z.string().optional().describe('Text of the checker, without addresses and secrets.'),
  subject: z.string().optional().describe('The digest that it is bound to, if that is another one.'),
  ...signer,
  keyHint: z.string().optional(),
  integratedTime: documentedAs(z.string().optional(), {
    type: 'string',
    format: 'date-time',
    description: 'RFC 3339 with `Z`.',
  }),
  tlogIndex: documentedAs(z.number().optional(), {
    type: 'integer',
    format: 'int64',
    description: 'Index in the transparency log, as an exact integer.',
  }),
}

/** Fields of SLSA provenance. */
const Provenance = z
  .strictObject({
    builderId: z.string().optional(),
    buildType: z.string().optional(),
    sourceRepo: z.string().optional(),
    sourceCommit: z.string().optional(),
    sourceRef: z.string().optional(),
  })
  .meta({ id: 'Provenance' })

/** A signature. Only a verified one names its signer. */
export const Signature = z.strictObject(signed).meta({ id: 'Signature' })
export type Signature = z.output<typeof Signature>

const stated = {
  predicateType: z.string(),
  payloadSha256: z.string().optional().describe('SHA-256 of the in-toto statement.'),
  provenance: Provenance.optional().describe('From verified SLSA provenance.'),
}

/** An attestation: a signed in-toto statement about the image. */
export const Attestation = z.strictObject({ ...signed, ...stated }).meta({ id: 'Statement' })
export type Attestation = z.output<typeof Attestation>
