/**
 * Reason codes of results. Checkers are released independently of the broker, so an unknown code is accepted
 * (docs/contract.md#signatures-and-attestations).
 */

import type { Metrics } from '../metrics/index.ts'
import type { Log } from '../observability/log.ts'

const KNOWN = new Set(
  (
    'bad_signature blocked_address blocked_realm digest_mismatch local_hostname malformed network no_repo_digest ' +
    'no_signer_identity private_address rate_limited registry_auth registry_error timeout too_large ' +
    'trust_root_unavailable unsupported_format untrusted_key untrusted_root'
  ).split(' '),
)

export const UNRECOGNISED = 'unrecognised_reason'
export const NO_SIGNER_IDENTITY = 'no_signer_identity'
export const UNTRUSTED_KEY = 'untrusted_key'

export const isKnownReason = (code: string): boolean => KNOWN.has(code)

const MAX_REMEMBERED = 64

/** Counts unknown reason codes, and logs each once, up to 64 codes. */
export class UnknownReasons {
  readonly #seen = new Set<string>()
  readonly #log: Log
  readonly #metrics: Metrics

  constructor({ log, metrics }: { log: Log; metrics: Metrics }) {
    this.#log = log
    this.#metrics = metrics
  }

  /** `codes` has each code as often as it was sent. */
  note(codes: readonly string[]): void {
    if (codes.length > 0) this.#metrics.unrecognisedReasons.inc(codes.length)
    for (const code of codes) {
      if (this.#seen.has(code) || this.#seen.size >= MAX_REMEMBERED) continue
      this.#seen.add(code)
      this.#log.warn({ reason: code }, 'a reason code of an attestation result is not known')
    }
  }
}
