/** The shared part of both routes of an export (docs/contract.md#seccomp-profiles). */
import { z } from 'zod'
import type { Database } from '../db/index.ts'
import type { RouteDoc } from '../openapi/declare.ts'
import { type Manifest, yamlOf } from '../text/yaml.ts'
import { ExportBody, type ExportOptions } from './export-options.ts'
import { manifestOf, SeccompProfile } from './manifest.ts'
import { headerOf } from './manifest-header.ts'
import type { Workload } from './names.ts'
import { readObserved } from './observed.ts'
import { captureHeaders, documentedCaptureHeaders, refusalOf, requireComplete } from './partial-capture.ts'
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

interface MadeProfile {
  readonly comments: string
  readonly manifest: Manifest
  /** Why it should not enforce, in several lines; null if it may, or does not. */
  readonly refusal: string | null
}

/**
 * The resource of a workload and the comments above it, whether or not the capture is complete.
 * @throws HttpError 404 if nothing was observed
 */
export async function makeProfile(
  db: Database,
  workload: Workload,
  defaultAction: ExportOptions['defaultAction'],
  prefix: string,
): Promise<MadeProfile> {
  const observed = await readObserved(db, workload)
  const options = { ...ExportBody.parse({}), defaultAction }
  return {
    comments: headerOf(workload, observed, options, prefix),
    manifest: manifestOf(workload, observed, options, prefix),
    refusal: refusalOf(workload, observed, options, prefix),
  }
}

type Made = Parameters<typeof manifestOf>

export const jsonOf = (...made: Made): string => JSON.stringify(manifestOf(...made))

/** The manifest as YAML, with comments above it that describe the capture. */
export const yamlTextOf = (...made: Made): string => headerOf(...made) + [...yamlOf(manifestOf(...made))].join('')
