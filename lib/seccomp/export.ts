/** The shared part of both routes of an export (docs/contract.md#seccomp-profiles). */
import { z } from 'zod'
import type { Database } from '../db/index.ts'
import type { RouteDoc } from '../openapi/declare.ts'
import { yamlOf } from '../text/yaml.ts'
import type { ExportOptions } from './export-options.ts'
import { manifestOf, SeccompProfile } from './manifest.ts'
import { headerOf } from './manifest-header.ts'
import type { Workload } from './names.ts'
import { readObserved } from './observed.ts'
import { captureHeaders, documentedCaptureHeaders, requireComplete } from './partial-capture.ts'
import { noProfile } from './profile.ts'

const YAML = 'application/yaml'

/** The answers of the routes, for the OpenAPI document. */
export const exportAnswers = {
  answer: [{ contentType: YAML, schema: z.string() }, SeccompProfile],
  headers: documentedCaptureHeaders,
  also: {
    404: noProfile().message,
    409: {
      description:
        'The capture is partial and `defaultAction` enforces. The text says why it is, how to complete it, and ' +
        'what can be done instead.',
      answer: { contentType: 'text/plain', schema: z.string() },
      headers: documentedCaptureHeaders,
    },
  },
} satisfies Partial<RouteDoc>

/** A manifest as sent. */
interface Exported {
  readonly text: string
  readonly headers: Record<string, string>
}

/**
 * Builds the manifest of a workload; the keys of its annotations begin with `prefix`. Stores nothing.
 * @throws HttpError 404 if nothing was observed; 409 if the default action blocks syscalls and the capture is partial
 */
export async function exportProfile(
  db: Database,
  workload: Workload,
  options: ExportOptions,
  prefix: string,
): Promise<Exported> {
  const observed = await readObserved(db, workload)
  requireComplete(workload, observed, options, prefix)
  const headers = captureHeaders(observed.capture)
  if (options.format === 'json') return { text: jsonOf(workload, observed, options, prefix), headers }
  return { text: yamlTextOf(workload, observed, options, prefix), headers: { ...headers, 'content-type': YAML } }
}

type Made = Parameters<typeof manifestOf>

export const jsonOf = (...made: Made): string => JSON.stringify(manifestOf(...made))

/** The manifest as YAML, with comments above it that describe the capture. */
export const yamlTextOf = (...made: Made): string => headerOf(...made) + [...yamlOf(manifestOf(...made))].join('')
