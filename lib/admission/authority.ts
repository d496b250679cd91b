/** The signers of images as policies express them (docs/contract.md#policies). */
import { createHash } from 'node:crypto'
import type { Signature } from '../attestations/index.ts'

export interface KeylessAuthority {
  readonly kind: 'keyless'
  readonly issuer: string
  /** The subject of the certificate. With `anyTag` it ends before the tag, and any tag matches. */
  readonly subject: string
  readonly anyTag: boolean
}

export interface KeyAuthority {
  readonly kind: 'key'
  /** SHA-256 of the key in DER, in hexadecimal digits. */
  readonly fingerprint: string
  /** Ends with one line feed. */
  readonly pem: string
}

export type Authority = KeylessAuthority | KeyAuthority

/** The fields of a signature or an attestation that name its signer. */
export type Signer = Pick<Signature, 'signerKind' | 'issuer' | 'san' | 'keyFingerprint' | 'keyPem'>

const GITHUB_ISSUER = 'https://token.actions.githubusercontent.com'
const GITHUB = 'https://github.com/'
const REFS = '@refs/'
/** Precedes the tag in a subject. */
export const TAGS = '@refs/tags/'

/**
 * Returns the authority of a signer, or null if no policy can express it: a key without its PEM. A GitHub Actions
 * workflow that signed for a tag may sign for any tag, since the next release has another one.
 */
export function authorityOf(signer: Signer): Authority | null {
  const { signerKind, issuer = '', san = '', keyFingerprint = '', keyPem = '' } = signer
  if (signerKind === 'key') {
    const pem = plainPem(keyPem)
    return pem === '' || keyFingerprint.trim() === ''
      ? null
      : { kind: 'key', fingerprint: plainFingerprint(keyFingerprint), pem: `${pem}\n` }
  }
  if (issuer.trim() === '' || san.trim() === '') return null
  const end = issuer === GITHUB_ISSUER ? workflowEnd(san) : null
  return { kind: 'keyless', issuer, subject: end === null ? san : san.slice(0, end), anyTag: end !== null }
}

/**
 * Returns where the workflow ends in a GitHub subject that names a workflow and a tag, else null. A branch or tag name
 * may itself contain `@refs/`, so the first occurrence counts; file names of workflows have no slash.
 */
function workflowEnd(subject: string): number | null {
  const at = subject.indexOf(REFS)
  return subject.startsWith(GITHUB) &&
    at > GITHUB.length &&
    subject.startsWith(TAGS, at) &&
    at + TAGS.length < subject.length
    ? at
    : null
}

/** Exactly one key. If a text has more, such as a second key, other PEM parsers may read another part. */
const ONE_KEY = /^-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/\s]+={0,2}\s*)-----END PUBLIC KEY-----\s*$/

const LINE = /.{1,64}/g

/**
 * Normalizes line breaks, so that the same key has the same text. Of a text that is not exactly one key only line ends
 * are normalized.
 */
function plainPem(pem: string): string {
  const text = pem.trim().replace(/\r\n?/g, '\n')
  const base64 = ONE_KEY.exec(text)?.[1]?.replace(/\s+/g, '') ?? ''
  if (base64 === '' || Buffer.from(base64, 'base64').toString('base64') !== base64) return text
  return ['-----BEGIN PUBLIC KEY-----', ...base64.match(LINE)!, '-----END PUBLIC KEY-----'].join('\n')
}

/** Lower case, if it is a SHA-256 in hexadecimal digits. */
const plainFingerprint = (text: string): string =>
  /^[0-9a-fA-F]{64}$/.test(text.trim()) ? text.trim().toLowerCase() : text

/** SHA-256 of the key that a PEM holds in DER, in hexadecimal digits; null if it does not hold exactly one key. */
export function fingerprintOf(pem: string): string | null {
  const base64 = ONE_KEY.exec(pem)?.[1]
  return base64 === undefined ? null : createHash('sha256').update(base64, 'base64').digest('hex')
}

/** An identity of the authority, to compare by. Keyless authorities sort before keys. */
export function keyOf(authority: Authority): string {
  return authority.kind === 'keyless'
    ? JSON.stringify(['0', authority.issuer, authority.subject, authority.anyTag])
    : JSON.stringify(['1', authority.fingerprint, authority.pem])
}

/** Characters with a meaning in regular expressions of RE2 and JavaScript. */
const SPECIAL = /[\\^$.*+?()[\]{}|]/g

export type Identity = { issuer: string; subject: string } | { issuer: string; subjectRegExp: string }

/** The identity of a keyless authority for every engine: exact texts, or an anchored RE2 expression. */
export const identityOf = ({ issuer, subject, anyTag }: KeylessAuthority): Identity =>
  anyTag ? { issuer, subjectRegExp: `^${subject.replace(SPECIAL, '\\$&')}${TAGS}.+$` } : { issuer, subject }

/** The signer as the engines that build on Sigstore express it. */
export const sigstoreSigner = (authority: Authority) =>
  authority.kind === 'key' ? { key: { data: authority.pem } } : { keyless: { identities: [identityOf(authority)] } }
