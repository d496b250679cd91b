/** A decision as people put it, and its row (docs/contract.md#decisions). */
import { z } from 'zod'
import type { Gate } from '../db/index.ts'
import { fixed } from '../db/index.ts'
import { HttpError } from '../errors.ts'
import { MAX_NAME_CHARS, MAX_WORD_CHARS, NOT_BLANK_PATTERN } from '../http/request/fields.ts'
import { digest } from '../images/digest.ts'
import { deserializeError } from '../json/parse.ts'
import { documentedAs } from '../openapi/declare.ts'
import { normalRepository } from '../supply-chain/repository.ts'
import { Decision } from './record.ts'
import {
  decisionWord,
  justification,
  MAX_BY_CHARS,
  MAX_HISTORY,
  MAX_HOLDING,
  MAX_PACKAGE_CHARS,
  MAX_REPOSITORY_CHARS,
  MAX_WHY_CHARS,
  RANK,
} from './words.ts'

/** Text that says something. The body was checked for what PostgreSQL cannot store. */
const said = (maxChars: number) =>
  documentedAs(
    z
      .string()
      .max(maxChars)
      .refine((text) => text.trim() !== '', 'expected text that is not blank'),
    { type: 'string', maxLength: maxChars, pattern: NOT_BLANK_PATTERN },
  )

const name = said(MAX_NAME_CHARS)

const Scope = z.discriminatedUnion('type', [
  z.object({ type: z.literal('all') }),
  z.object({ type: z.literal('namespace'), namespace: name }),
  z.object({ type: z.literal('workload'), namespace: name, kind: said(MAX_WORD_CHARS), name }),
  z.object({ type: z.literal('image'), digest }),
  z.object({ type: z.literal('repository'), repository: said(MAX_REPOSITORY_CHARS) }),
])

const day = documentedAs(z.string().refine(isDay, 'expected a day of the calendar: YYYY-MM-DD'), {
  type: 'string',
  format: 'date',
  pattern: '^\\d{4}-\\d\\d-\\d\\d$',
})

function isDay(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || text < '0001-01-01') return false
  const time = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text)
}

/** The body of PUT /vulnerabilities/{id}/decision. */
export const PutDecision = z
  .object({
    scope: Scope.describe('Where it holds. `workload` is the most specific, then an image, a namespace and `all`.'),
    package: documentedAs(said(MAX_PACKAGE_CHARS), {
      ...{ type: 'string', maxLength: MAX_PACKAGE_CHARS, pattern: NOT_BLANK_PATTERN },
      description: 'The exact name of a package, or its package URL (`pkg:...`); all packages without it.',
    }).nullish(),
    decision: decisionWord.nullable().describe('Null takes back what was put for this scope and package.'),
    justification: justification.nullish().describe('Required with `not_affected`, and allowed only with it.'),
    until: day.nullish().describe('The last day on which it holds, in UTC; not past. Without it there is no end.'),
    by: said(MAX_BY_CHARS).describe('The person or team that decides.'),
    why: said(MAX_WHY_CHARS),
  })
  .meta({ id: 'PutDecision' })
export type PutDecision = z.output<typeof PutDecision>

export const PutOutcome = z
  .strictObject({
    status: z.enum(['stored', 'unchanged', 'withdrawn']),
    decision: Decision.nullable().describe('What holds now for this scope and package; null where nothing was put.'),
  })
  .meta({ id: 'DecisionOutcome' })

/** The columns of a scope. */
function placeOf(scope: PutDecision['scope']) {
  switch (scope.type) {
    case 'workload':
      return {
        ...{ scope_rank: RANK.workload, pod_namespace: scope.namespace, workload_kind: scope.kind },
        workload_name: scope.name,
      }
    case 'image':
      return { scope_rank: RANK.image, image_digest: scope.digest }
    case 'repository': {
      const repository = normalRepository(undefined, scope.repository)
      if (repository === undefined) throw deserializeError('scope.repository: expected the name of a repository')
      return { scope_rank: RANK.image, repository }
    }
    case 'namespace':
      return { scope_rank: RANK.namespace, pod_namespace: scope.namespace }
    default:
      return { scope_rank: RANK.all }
  }
}

/** The columns of a package: its URL, or its name. */
export const packageColumns = (text: string | null) =>
  text === null
    ? { package_name: null, package_purl: null }
    : text.startsWith('pkg:')
      ? { package_name: null, package_purl: text }
      : { package_name: text, package_purl: null }

const PUT = fixed(`select store_decision($1::text::json, ${MAX_HOLDING}, ${MAX_HISTORY}) as outcome`)

/**
 * Stores a decision about a vulnerability, or takes it back. Returns a `PutOutcome` as JSON.
 * @throws HttpError 400 for fields that contradict each other and for a day that is past; 409 if too many hold
 */
export async function putDecision(ingest: Gate, vulnId: string, put: PutDecision): Promise<string> {
  const isJustified = put.justification !== undefined && put.justification !== null
  if (put.decision === 'not_affected' && !isJustified)
    throw deserializeError('justification: required with not_affected')
  if (put.decision !== 'not_affected' && isJustified) throw deserializeError('justification: only with not_affected')
  const row = {
    vuln_id: vulnId,
    ...placeOf(put.scope),
    ...packageColumns(put.package ?? null),
    decision: put.decision,
    justification: put.justification ?? null,
    holds_until: put.until ?? null,
    decided_by: put.by,
    reason: put.why,
  }
  const outcome = (await ingest.json((sql) => PUT(sql, JSON.stringify(row))))!.toString()
  const { status } = JSON.parse(outcome) as { status: string }
  if (status === 'past') throw deserializeError('until: expected a day that is not past')
  if (status === 'full') throw tooManyHold()
  return outcome
}

export const tooManyHold = () =>
  new HttpError(409, `${MAX_HOLDING} decisions hold already: take back those that are not needed`)
