/** Revisions in requests, and the refusal of those that are gone (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import type { Gate } from '../../db/index.ts'
import type { HttpError } from '../../errors.ts'
import { BAD_REQUEST, CodedError, coded } from '../../http/coded-errors.ts'
import { documentedAs } from '../../openapi/declare.ts'
import type { WorkloadKey } from '../built.ts'
import { isKnownWorkload, workloadNotFound } from '../known.ts'

const MAX_REVISION = 2 ** 31 - 1
const RANGE = { type: 'integer', minimum: -MAX_REVISION, maximum: MAX_REVISION } as const
const RULE = 'expected an integer of 32 bits'

const integer = z.string().transform((text, c): number => {
  const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN
  if (Math.abs(value) <= MAX_REVISION) return value
  c.addIssue({ code: 'custom', message: RULE })
  return z.NEVER
})

/** A revision in the path: any integer, since one that is not stored is 404. */
export const revisionSegment = documentedAs(integer, {
  ...RANGE,
  description: 'The revision of a version.',
})

/** A revision in the query; null where it is missing or blank. */
export const revisionOrNull = (what: string) =>
  documentedAs(
    z
      .string()
      .optional()
      .transform((sent) => (sent === undefined || sent.trim() === '' ? null : sent))
      .pipe(integer.nullable()),
    { ...RANGE, description: `${what}; blank is as if it were absent.` },
  )

/** The refusals of the routes about one version, for the document. */
export const VERSION_REFUSALS = {
  ...BAD_REQUEST,
  404: {
    description: 'No such version, `revision_not_found`, or nothing is known of the workload, `workload_not_found`.',
    answer: CodedError,
  },
}

/** 404 for a revision that is not stored, or for a workload of which nothing is known. */
export async function revisionNotFound(gate: Gate, workload: WorkloadKey, message: string): Promise<HttpError> {
  if (await isKnownWorkload(gate, workload)) return coded(404, 'revision_not_found', message)
  return workloadNotFound(workload)
}
