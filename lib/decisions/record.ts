/** A decision as answers show it (docs/contract.md#decisions). */
import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/digest.ts'
import { decisionWord, justification } from './words.ts'

const Scope = z.union([
  z.strictObject({ type: z.literal('workload'), namespace: z.string(), kind: z.string(), name: z.string() }),
  z.strictObject({
    type: z.literal('image'),
    digest: digestText,
    arch: z.string().optional().describe('Only the platform of this architecture, where the digest is an index.'),
  }),
  z.strictObject({ type: z.literal('repository'), repository: z.string() }),
  z.strictObject({ type: z.literal('namespace'), namespace: z.string() }),
  z.strictObject({ type: z.literal('all') }),
])

const Origin = z
  .strictObject({
    document: z.string().describe('The id of a VEX document.'),
    version: z.int(),
    statement: z.int().min(0).describe('The position of its statement, from 0.'),
  })
  .meta({ id: 'DecisionOrigin' })

export const decisionFields = {
  id: z.int(),
  vulnerability: z.string().describe('The id under which it was decided, which may be an alias.'),
  decision: decisionWord,
  justification: justification.nullable(),
  scope: Scope,
  package: z.string().nullable().describe('The name or the package URL of a package; null for all packages.'),
  until: z.string().nullable().describe('The last day on which it holds, in UTC; null for no end.'),
  by: z.string(),
  why: z.string(),
  decidedAt: wireTime,
  origin: Origin.nullable().describe('The statement of a VEX document behind it; null where it was put.'),
}

export const Decision = z.strictObject(decisionFields).meta({ id: 'Decision' })
