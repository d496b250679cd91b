/** The controls of a workload, and whether it is ready for stricter ones (docs/contract.md#workload-profiles). */
import type { Dimensions } from './posture.ts'
import type { AppliedProfile } from './read.ts'
import type { Profile } from './record/profile.ts'
import { isAudit } from './syscalls/index.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

/** `applied` is the resource of the workload, which the dimension lacks where no syscall was observed. */
export function controlsOf(
  { network, syscalls }: Pick<Dimensions, 'network' | 'syscalls'>,
  applied: AppliedProfile | null,
): Profile['controls'] {
  const { audit } = network.policy
  const { cr } = syscalls
  const resource = cr ?? applied
  return [
    {
      control: 'networkPolicy',
      state: audit === null ? 'unknown' : 'audit',
      detail:
        audit === null
          ? 'No audited policy covers this workload, and the broker does not see which network policies are applied'
          : `Audited policies: ${audit.allow} connection(s) allowed, ${audit.wouldDeny} would be denied`,
      inSync: audit === null ? null : audit.wouldDeny === 0,
    },
    {
      control: 'seccompProfile',
      state: resource === null ? 'none' : isAudit(resource) ? 'audit' : 'enforcing',
      detail: seccompDetail(cr, applied),
      inSync: cr === null ? null : cr.inSync,
    },
    {
      control: 'imageAdmission',
      state: null,
      detail: 'The broker admits no images; it shows signatures, and what the evaluator of image trust reports',
      inSync: null,
    },
  ]
}

function seccompDetail(cr: Dimensions['syscalls']['cr'], applied: AppliedProfile | null): string {
  const nameOf = ({ name, defaultAction }: AppliedProfile) => `The SeccompProfile ${name} (${defaultAction})`
  if (cr !== null) return `${nameOf(cr)} allows ${cr.syscallCount} syscalls; on the nodes: ${cr.distribution.state}`
  if (applied === null) return 'No SeccompProfile refers to this workload'
  return `${nameOf(applied)} refers to this workload, of which no syscall was captured to compare it with`
}

/** `imageSigned` as the images of the workload are judged; `now` in milliseconds. */
export function readinessOf(
  { network, syscalls, podSecurity }: Dimensions,
  imageSigned: boolean | null,
  now: number,
): Profile['readiness'] {
  const { audit } = network.policy
  const { capture } = syscalls
  return [
    trafficObserved(network, now),
    {
      id: 'syscallCaptureComplete',
      ok: capture === null ? null : capture.complete,
      message:
        capture === null
          ? 'No syscall of this workload was captured'
          : capture.complete
            ? 'Every pod that contributed was captured whole'
            : `${capture.incompletePods} pod(s) were not captured whole`,
    },
    {
      id: 'noWouldDeny24h',
      ok: audit === null ? null : audit.wouldDeny === 0,
      message:
        audit === null
          ? 'No audited policy covers this workload'
          : `${audit.wouldDeny} connection(s) would have been denied in the last ${audit.windowHours} hours`,
    },
    { id: 'imageSigned', ok: imageSigned, message: SIGNED[String(imageSigned) as keyof typeof SIGNED] },
    {
      id: 'podSecurityRestricted',
      ok: podSecurity.level === 'privileged' || podSecurity.level === 'baseline' ? false : null,
      message:
        podSecurity.level === null
          ? 'No current container is known'
          : podSecurity.level === 'restricted'
            ? `Every check that can be made passes; ${podSecurity.unevaluatedChecks.length} cannot be made`
            : `The level is ${podSecurity.level} at most`,
    },
  ]
}

const SIGNED = {
  true: 'Every image that runs has a verified signature',
  false: 'An image that runs has no verified signature',
  null: 'The signatures of the images that run are not known',
}

function trafficObserved({ coverage }: Dimensions['network'], now: number): Profile['readiness'][number] {
  const id = 'trafficObserved24h'
  const first = coverage.observedSince
  if (first === null) return { id, ok: false, message: 'No flow was seen' }
  const age = now - Date.parse(first)
  const [days, hours] = [Math.floor(age / DAY_MS), Math.floor((age % DAY_MS) / HOUR_MS)]
  return { id, ok: age >= DAY_MS, message: `Flows are seen for ${days} day(s) and ${hours} hour(s)` }
}
