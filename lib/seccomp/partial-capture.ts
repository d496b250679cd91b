/** Decides which exports are refused, and describes the capture in every export (docs/contract.md#seccomp-profiles). */
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import type { AnswerHeaders } from '../openapi/declare.ts'
import { quoted } from '../text/yaml.ts'
import { type Capture, LEVELS } from './capture.ts'
import type { ExportOptions } from './export-options.ts'
import { LOG_ACTION, type Workload } from './names.ts'
import type { Observed } from './observed.ts'

const LEVEL_HEADER = 'X-Kguardian-Capture-Level'
const COMPLETE_HEADER = 'X-Kguardian-Capture-Complete'

/** Most pods named in one line; the others are counted. */
const MAX_PODS_NAMED = 5
/** Most syscalls named in one line. More than pods, because no other part of the export names them. */
const MAX_SYSCALLS_NAMED = 50

/** The headers of `captureHeaders`, for the OpenAPI document. */
export const documentedCaptureHeaders: AnswerHeaders = {
  [LEVEL_HEADER]: z.enum(LEVELS).describe('The lowest tier of all pods that contributed.'),
  [COMPLETE_HEADER]: z.enum(['true', 'false']).describe('Whether there is a contributor, and every one is `full`.'),
}

/** Headers of every answer of an export once its workload is known, also readable by scripts of other origins. */
export const captureHeaders = ({ level, complete }: Pick<Capture, 'level' | 'complete'>): Record<string, string> => ({
  [LEVEL_HEADER]: level,
  [COMPLETE_HEADER]: String(complete),
  'access-control-expose-headers': `${LEVEL_HEADER}, ${COMPLETE_HEADER}`,
})

/** The reason why a capture is partial, in one line. */
export function reasonOf({ level, pods, more, incomplete }: Capture): string {
  if (pods.length === 0) return `level ${level}: no pod that contributed is known`
  // Pods are sorted, the lowest tier first, so all pods below full come before the others.
  const below = pods.filter((pod) => pod.level !== 'full').map((pod) => `${quoted(pod.name)} at ${pod.level}`)
  return (
    `level ${level}: ${incomplete} of ${pods.length + more} contributing pods below full, ` +
    `${listed(below.slice(0, MAX_PODS_NAMED), incomplete)}`
  )
}

/** Reported names that are not names of syscalls, in one line. */
export const named = (names: readonly string[]): string =>
  listed(names.slice(0, MAX_SYSCALLS_NAMED).map(quoted), names.length)

const listed = (first: readonly string[], count: number): string =>
  `${first.join(', ')}${count > first.length ? `, +${count - first.length} more` : ''}`

/** Instructions to capture the pods of a workload in full. */
export const howToRaise = (prefix: string): string =>
  `annotate its pods with ${prefix}/syscall-capture: "full" or ${prefix}/seccomp-record: "true", and let them run`

/** States in one line that the set was reset, as long as it is not complete since; else null. */
export const resetOf = ({ resetAt, capture }: Observed): string | null =>
  resetAt === null || capture.complete
    ? null
    : `the set was reset at ${resetAt} and has not been complete since; restart older pods, because agents send a ` +
      'name once'

/**
 * @throws HttpError 409 for a profile that blocks syscalls, made from a partial capture, unless the caller acknowledged
 * it
 */
export function requireComplete(workload: Workload, observed: Observed, options: ExportOptions, prefix: string): void {
  const refusal = refusalOf(workload, observed, options, prefix)
  if (refusal === null || options.acknowledgePartial) return
  throw new HttpError(409, refusal, captureHeaders(observed.capture))
}

/** Why a profile that blocks syscalls should not be made from a capture, in several lines; null if it may be. */
export function refusalOf(
  { namespace, kind, name }: Workload,
  observed: Observed,
  { defaultAction }: Pick<ExportOptions, 'defaultAction'>,
  prefix: string,
): string | null {
  const { capture } = observed
  if (capture.complete || defaultAction === LOG_ACTION) return null
  const reset = resetOf(observed)
  const lines = [
    `refused: the capture of ${quoted(namespace)} ${quoted(kind)}/${quoted(name)} is partial, and a profile that ` +
      'enforces would block what it missed',
    `asked for: defaultAction ${defaultAction}`,
    `capture: ${reasonOf(capture)}`,
    ...(reset === null ? [] : [`reset: ${reset}`]),
    `to capture all of it: ${howToRaise(prefix)}`,
    `or export with defaultAction ${LOG_ACTION}, which blocks nothing`,
    'or export it as it is with acknowledgePartial=true',
  ]
  return `${lines.join('\n')}\n`
}
