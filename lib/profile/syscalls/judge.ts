/** The observed syscalls of a workload, its custom resource and its denials (docs/contract.md#workload-profiles). */
import type { z } from 'zod'
import type { ObservedProfile } from '../../seccomp/index.ts'
import { finding, type Judged, statusOf } from '../finding.ts'
import type { Finding, Reason } from '../record/common.ts'
import type { Syscalls } from '../record/syscalls.ts'
import type { Snapshot } from '../snapshot.ts'

type Observed = z.output<typeof ObservedProfile>
type Resource = NonNullable<Observed['cr']>

/** Default actions that only watch. */
const AUDITS = ['SCMP_ACT_LOG', 'SCMP_ACT_ALLOW']
/** Whether a resource only watches. */
export const isAudit = ({ defaultAction }: Pick<Resource, 'defaultAction'>) => AUDITS.includes(defaultAction)
const modeOf = (resource: Resource) => (isAudit(resource) ? 'audit' : 'enforce')

/** `observed` is the entry of GET /seccomp/profiles for the workload; null where nothing was observed. */
export function judgeSyscalls(observed: Observed | null): Judged<Syscalls> {
  if (observed === null) return { dimension: UNSEEN, findings: [] }
  const { cr, capture, denials } = observed
  const findings = findingsOf(observed)
  const status = statusOf(findings)
  return {
    findings,
    dimension: {
      // A syscall that was not captured is not known to be fine.
      status: !capture.complete && status === 'ok' ? 'warn' : status,
      coverage: {
        level: capture.complete ? 'full' : 'partial',
        fraction: null,
        observedSince: null,
        note: `Capture level ${capture.level}`,
      },
      reasons: reasonsOf(observed),
      observed: {
        syscallCount: observed.syscallCount,
        hash: observed.hash,
        architectures: observed.architectures,
        updatedAt: zoned(observed.updatedAt),
      },
      capture: { level: capture.level, complete: capture.complete, incompletePods: capture.incomplete },
      cr: cr === null ? null : resourceOf(cr),
      denials:
        denials === null ? null : { total: denials.total, syscalls: denials.syscalls, lastSeen: denials.lastSeen },
    },
  }
}

/** The syscalls of a version. */
export const syscallsSnapshot = (observed: Observed | null): Snapshot['syscalls'] =>
  observed === null
    ? { syscalls: null, captureLevel: null, cr: null }
    : {
        syscalls: observed.profile.syscalls[0]?.names ?? [],
        captureLevel: observed.capture.level,
        cr: observed.cr && {
          name: observed.cr.name,
          defaultAction: observed.cr.defaultAction,
          hash: observed.cr.hash,
        },
      }

const UNSEEN: Syscalls = {
  status: 'unknown',
  coverage: { level: 'none', fraction: null, observedSince: null, note: 'No syscall was observed' },
  reasons: [{ code: 'no_observations', message: 'No syscall of this workload was captured' }],
  observed: null,
  capture: null,
  cr: null,
  denials: null,
}

function resourceOf(cr: Resource): NonNullable<Syscalls['cr']> {
  const { ready, total, state } = cr.distribution
  return {
    name: cr.name,
    defaultAction: cr.defaultAction,
    mode: modeOf(cr),
    syscallCount: cr.syscallCount,
    inSync: cr.drift.inSync,
    missing: cr.drift.missing,
    extra: cr.drift.extra,
    distribution: { ready, total, state },
    statusDistribution: cr.statusDistribution,
  }
}

function reasonsOf({ cr, capture, denials }: Observed): Reason[] {
  const reasons: Reason[] = []
  if (cr === null) reasons.push({ code: 'no_cr', message: 'No SeccompProfile refers to this workload' })
  else if (modeOf(cr) === 'audit')
    reasons.push({ code: 'cr_audit', message: `The SeccompProfile ${cr.name} only logs (${cr.defaultAction})` })
  if (cr !== null && !cr.drift.inSync)
    reasons.push({
      code: 'cr_drift',
      message: `The SeccompProfile ${cr.name} lacks ${cr.drift.missing.length} observed syscall(s)`,
    })
  if (denials === null)
    reasons.push({ code: 'denials_unknown', message: 'It is not known whether any syscall was denied' })
  if (!capture.complete)
    reasons.push({
      code: 'capture_incomplete',
      message: `${capture.incomplete} pod(s) were not captured whole, at worst at level ${capture.level}`,
    })
  return reasons
}

function findingsOf({ cr, denials }: Observed): Finding[] {
  const findings: Finding[] = []
  if (cr === null)
    findings.push(
      finding('syscalls', 'no_enforcing_profile', 'medium', {
        title: 'No SeccompProfile enforces the observed syscalls',
        detail: 'Export the observed profile, apply it so that it only logs, and enforce it when nothing is logged.',
      }),
    )
  else if (modeOf(cr) === 'audit')
    findings.push(
      finding('syscalls', 'no_enforcing_profile', 'medium', {
        title: `The SeccompProfile ${cr.name} only logs`,
        detail: 'Change its default action to SCMP_ACT_ERRNO when nothing is denied any more.',
      }),
    )
  if (cr !== null && !cr.drift.inSync)
    findings.push(
      finding('syscalls', 'drift', 'medium', {
        title: `The SeccompProfile ${cr.name} lacks observed syscalls`,
        detail: `Not allowed: ${someOf(cr.drift.missing)}.`,
      }),
    )
  if (denials !== null && denials.total > 0)
    findings.push(
      finding('syscalls', 'denials', 'high', {
        title: `${denials.total} syscall(s) were denied`,
        detail: `Denied: ${someOf(denials.syscalls)}.`,
      }),
    )
  return findings
}

const MAX_NAMED = 10
const someOf = (names: readonly string[]) =>
  names.length > MAX_NAMED
    ? `${names.slice(0, MAX_NAMED).join(', ')} and ${names.length - MAX_NAMED} more`
    : names.join(', ')

const zoned = (naive: string) => `${naive}Z`
