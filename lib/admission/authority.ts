/** Who signs, as policies say it (interop-supply-chain, section 4, planning 3). */
import { createHash } from 'node:crypto'
import type { Signature } from '../attestations/index.ts'

export interface KeylessAuthority {
  readonly kind: 'keyless'
  readonly issuer: string
  /** The subject of the certificate; with `anyTag` what comes before the tag, of which any will do. */
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

/** What of a signature or an attestation says who signed it. */
export type Signer = Pick<Signature, 'signerKind' | 'issuer' | 'san' | 'keyFingerprint' | 'keyPem'>

const GITHUB_ISSUER = 'https://token.actions.githubusercontent.com'
const GITHUB = 'https://github.com/'
const REFS = '@refs/'
/** What comes before the tag. */
export const TAGS = '@refs/tags/'

/**
 * The authority of who signed; null where no policy can say it: a key of which the PEM is unknown. A workflow of GitHub Actions that signed
 * for a tag may do so for any: the next release is another one.
 */
export function authorityOf({
  signerKind,
  issuer = '',
  san = '',
  keyFingerprint = '',
  keyPem = '',
}: Signer): Authority | null {
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
 * Where the workflow of GitHub ends in a subject that names one and a tag; null in any other. What follows the first `@refs/` is the name of
 * the branch or the tag, which may look like another: no workflow has a slash in the name of its file.
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

/** One key and nothing else: of anything more, such as a second key, parsers of PEM may take another part than we. */
const ONE_KEY = /^-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/\s]+={0,2}\s*)-----END PUBLIC KEY-----\s*$/

const LINE = /.{1,64}/g

/** The same text for the same key, however it is broken into lines; of what is not plainly one key the ends of lines alone are made alike. */
function plainPem(pem: string): string {
  const text = pem.trim().replace(/\r\n?/g, '\n')
  const base64 = ONE_KEY.exec(text)?.[1]?.replace(/\s+/g, '') ?? ''
  if (base64 === '' || Buffer.from(base64, 'base64').toString('base64') !== base64) return text
  return ['-----BEGIN PUBLIC KEY-----', ...base64.match(LINE)!, '-----END PUBLIC KEY-----'].join('\n')
}

/** In small letters, where it is the digits of SHA-256. */
const plainFingerprint = (text: string): string =>
  /^[0-9a-fA-F]{64}$/.test(text.trim()) ? text.trim().toLowerCase() : text

/** SHA-256 of the key in DER that a PEM holds, in hexadecimal digits; null where it is not plain which that is. */
export function fingerprintOf(pem: string): string | null {
  const base64 = ONE_KEY.exec(pem)?.[1]
  return base64 === undefined ? null : createHash('sha256').update(base64, 'base64').digest('hex')
}

/** The same for the same authority alone. In the order of these texts, keyless ones come first. */
export function keyOf(authority: Authority): string {
  return authority.kind === 'keyless'
    ? JSON.stringify(['0', authority.issuer, authority.subject, authority.anyTag])
    : JSON.stringify(['1', authority.fingerprint, authority.pem])
}

/** What RE2 and JavaScript take for more than the character that it is. */
const SPECIAL = /[\\^$.*+?()[\]{}|]/g

export type Identity = { issuer: string; subject: string } | { issuer: string; subjectRegExp: string }

/** The identity of a keyless authority, for every engine: exactly, or by a regular expression of RE2 that is anchored. */
export const identityOf = ({ issuer, subject, anyTag }: KeylessAuthority): Identity =>
  anyTag ? { issuer, subjectRegExp: `^${subject.replace(SPECIAL, '\\$&')}${TAGS}.+$` } : { issuer, subject }
