/** Shared by both routes of an export (docs/contract.md#seccomp-profiles). */
import { z } from 'zod'
import type { Database } from '../db/index.ts'
import type { RouteDoc } from '../openapi/declare.ts'
import { yamlOf } from '../text/yaml.ts'
import type { ExportOptions } from './export-options.ts'
import { captureHeaders, requireComplete, shownCaptureHeaders } from './gate.ts'
import { manifestOf, SeccompProfile } from './manifest.ts'
import { headerOf } from './manifest-header.ts'
import type { Workload } from './names.ts'
import { readObserved } from './observed.ts'
import { noProfile } from './profile.ts'

const YAML = 'application/yaml'

/** What the routes answer, for the OpenAPI document. */
export const exportAnswers = {
  answer: [{ contentType: YAML, schema: z.string() }, SeccompProfile],
  headers: shownCaptureHeaders,
  also: {
    404: noProfile().message,
    409: {
      description:
        'The capture is partial and `defaultAction` enforces. The text says why it is, how to complete it, and what can be done instead.',
      answer: { contentType: 'text/plain', schema: z.string() },
      headers: shownCaptureHeaders,
    },
  },
} satisfies Partial<RouteDoc>

/** A manifest as it is sent. */
export interface Exported {
  readonly text: string
  readonly headers: Record<string, string>
}

/**
 * Makes the manifest of a workload; annotations have the `prefix`. Nothing is stored. Throws 404 when nothing was observed of it, 409 when
 * the action enforces and the capture is partial.
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

/** The manifest as JSON. */
export const jsonOf = (...made: Made): string => JSON.stringify(manifestOf(...made))

/** The same as YAML, with what there is to know about it in comments above. */
export const yamlTextOf = (...made: Made): string => headerOf(...made) + [...yamlOf(manifestOf(...made))].join('')
