/** Decides which exports are refused, and describes the capture in every export (docs/contract.md#seccomp-profiles). */
import { z } from 'zod'
import { HttpError } from '../http/errors.ts'
import type { AnswerHeaders } from '../openapi/declare.ts'
import { quoted } from '../text/yaml.ts'
import { type Capture, LEVELS } from './capture.ts'
import type { ExportOptions } from './export-options.ts'
import { LOG_ACTION, type Workload } from './names.ts'
import type { Observed } from './observed.ts'

const LEVEL_HEADER = 'X-Kguardian-Capture-Level'
const COMPLETE_HEADER = 'X-Kguardian-Capture-Complete'

/** Pods that one line names; of the others it tells how many there are. */
const MAX_PODS_NAMED = 5
/** The same of syscalls, which nothing else tells of. */
const MAX_SYSCALLS_NAMED = 50

/** The headers of `captureHeaders`, for the OpenAPI document. */
export const shownCaptureHeaders: AnswerHeaders = {
  [LEVEL_HEADER]: z.enum(LEVELS).describe('The lowest tier of all pods that contributed.'),
  [COMPLETE_HEADER]: z.enum(['true', 'false']).describe('Whether there is a contributor, and every one is `full`.'),
}

/** What every answer of an export carries once its workload is known, to scripts of other origins too. */
export const captureHeaders = ({ level, complete }: Capture): Record<string, string> => ({
  [LEVEL_HEADER]: level,
  [COMPLETE_HEADER]: String(complete),
  'access-control-expose-headers': `${LEVEL_HEADER}, ${COMPLETE_HEADER}`,
})

/** Why a capture is partial, in one line. */
export function reasonOf({ level, pods, more, incomplete }: Capture): string {
  if (pods.length === 0) return `level ${level}: no pod that contributed is known`
  // The worst come first, so that all below full come before the others.
  const below = pods.filter((pod) => pod.level !== 'full').map((pod) => `${quoted(pod.name)} at ${pod.level}`)
  return `level ${level}: ${incomplete} of ${pods.length + more} contributing pods below full, ${listed(below.slice(0, MAX_PODS_NAMED), incomplete)}`
}

/** Names of syscalls that are none, in one line. */
export const named = (names: readonly string[]): string =>
  listed(names.slice(0, MAX_SYSCALLS_NAMED).map(quoted), names.length)

const listed = (first: readonly string[], count: number): string =>
  `${first.join(', ')}${count > first.length ? `, +${count - first.length} more` : ''}`

/** How the pods of a workload come to be captured in full. */
export const howToRaise = (prefix: string): string =>
  `annotate its pods with ${prefix}/syscall-capture: "full" or ${prefix}/seccomp-record: "true", and let them run`

/** That the set was begun anew, in one line, for as long as it is not complete; else null. */
export const resetOf = ({ resetAt, capture }: Observed): string | null =>
  resetAt === null || capture.complete
    ? null
    : `the set was reset at ${resetAt} and is not complete since; restart pods that are older, since agents send a name once`

/** Throws 409 where a profile that enforces would be made of a capture that missed something, unless that was acknowledged. */
export function requireComplete(workload: Workload, observed: Observed, options: ExportOptions, prefix: string): void {
  const { capture } = observed
  const { defaultAction, acknowledgePartial } = options
  if (capture.complete || defaultAction === LOG_ACTION || acknowledgePartial) return
  const { namespace, kind, name } = workload
  const reset = resetOf(observed)
  const lines = [
    `refused: the capture of ${quoted(namespace)} ${quoted(kind)}/${quoted(name)} is partial, and a profile that enforces would block what it missed`,
    `asked for: defaultAction ${defaultAction}`,
    `capture: ${reasonOf(capture)}`,
    ...(reset === null ? [] : [`reset: ${reset}`]),
    `to capture all of it: ${howToRaise(prefix)}`,
    `or export with defaultAction ${LOG_ACTION}, which blocks nothing`,
    'or export it as it is with acknowledgePartial=true',
  ]
  throw new HttpError(409, `${lines.join('\n')}\n`, captureHeaders(capture))
}
