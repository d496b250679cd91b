import { MAX_NAME_CHARS } from '../http/request/fields.ts'

/** A verdict of the evaluator, of the two kinds that are stored (docs/contract.md#verdicts). */
export interface PolicyVerdict {
  policy_uid: string
  policy_namespace: string
  policy_name: string
  direction: 'Ingress' | 'Egress'
  verdict: 'Allow' | 'WouldDeny'
  /** Empty for `Allow`. */
  reason: string
}

/** Longer reasons are cut: only people read them. */
const MAX_REASON_CHARS = 4_096

/** An invalid reply; the message quotes nothing of it. */
export class BadReply extends Error {
  override readonly name = 'BadReply'
}

/**
 * Returns the verdicts of a reply. Missing or null `results` means none; results that are not applicable or have an
 * unknown verdict are skipped.
 * @throws BadReply
 */
export function readVerdicts(text: string): PolicyVerdict[] {
  const reply = parse(text)
  if (typeof reply !== 'object' || reply === null || Array.isArray(reply)) throw new BadReply('expected an object')
  const { results } = reply as { results?: unknown }
  if (results === undefined || results === null) return []
  if (!Array.isArray(results)) throw new BadReply('results: expected an array')
  return results.map(readVerdict).filter((verdict) => verdict !== null)
}

/** The cause of a drop; null for any other than the three known ones. */
export function readCause(text: string): string | null {
  const { cause } = (parse(text) ?? {}) as { cause?: unknown }
  return cause === 'no-policy' || cause === 'policy-governs' || cause === 'unknown' ? cause : null
}

function readVerdict(result: unknown, index: number): PolicyVerdict | null {
  if (typeof result !== 'object' || result === null) throw new BadReply(`results[${index}]: expected an object`)
  const { policyNamespace, policyName, policyUID, direction, verdict, reason } = result as Record<string, unknown>
  if (verdict !== 'Allow' && verdict !== 'WouldDeny') return null
  if (direction !== 'Ingress' && direction !== 'Egress')
    throw new BadReply(`results[${index}].direction: expected Ingress or Egress`)
  return {
    policy_uid: nameOf(policyUID ?? '', index, 'policyUID'),
    policy_namespace: nameOf(policyNamespace ?? '', index, 'policyNamespace'),
    policy_name: nameOf(policyName, index, 'policyName'),
    direction,
    verdict,
    reason: verdict === 'WouldDeny' && typeof reason === 'string' ? storable(reason.slice(0, MAX_REASON_CHARS)) : '',
  }
}

function nameOf(value: unknown, index: number, key: string): string {
  if (typeof value !== 'string' || value.length > MAX_NAME_CHARS || storable(value) !== value)
    throw new BadReply(`results[${index}].${key}: expected a name`)
  return value
}

/** Removes what PostgreSQL cannot store: U+0000 and lone surrogates. */
const storable = (text: string) => text.replaceAll('\0', '').toWellFormed()

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new BadReply('not JSON')
  }
}
