/**
 * Options of an export (docs/contract.md#seccomp-profiles). A blank value counts as absent, and in a body null does
 * too.
 */
import { z } from 'zod'
import { NO_NULL_PATTERN, saysYes } from '../http/request/fields.ts'
import { listOf } from '../http/request/first-fault.ts'
import { documentedAs } from '../openapi/declare.ts'
import { DNS_NAME, isDnsName, LOG_ACTION, MAX_DNS_NAME_CHARS, SYSCALL_NAME } from './names.ts'

/** Most names in one list of edits. */
const MAX_EDITS = 512

/** Default actions of an exported profile. */
export const ACTIONS = [LOG_ACTION, 'SCMP_ACT_ERRNO', 'SCMP_ACT_KILL', 'SCMP_ACT_KILL_PROCESS'] as const
const FORMATS = ['yaml', 'yml', 'json'] as const

/** A parameter with one of these values; the first one if the text is blank. */
const oneOf = <W extends string>(words: readonly [W, ...W[]], what: string) =>
  documentedAs(
    z.string().transform((text, c) => {
      if (text.trim() === '') return words[0]
      const word = words.find((one) => one === text)
      if (word !== undefined) return word
      c.addIssue({ code: 'custom', message: `expected one of ${words.join(', ')}` })
      return z.NEVER
    }),
    { type: 'string', enum: [...words, ''], default: words[0], description: what },
  )

const defaultAction = oneOf(
  ACTIONS,
  `The action for a syscall that is not listed: one of ${ACTIONS.map((one) => `\`${one}\``).join(', ')}.`,
)
const format = oneOf(FORMATS, 'The notation of the answer: `yaml`, `yml` or `json`.')

const name = documentedAs(
  z.string().transform((text, c) => {
    if (text.trim() === '') return null
    if (isDnsName(text)) return text
    c.addIssue({ code: 'custom', message: `expected a DNS subdomain of at most ${MAX_DNS_NAME_CHARS} characters` })
    return z.NEVER
  }),
  {
    type: 'string',
    maxLength: MAX_DNS_NAME_CHARS,
    pattern: `${DNS_NAME.source}|^\\s*$`,
    description: 'The name of the resource, a DNS subdomain; by default the suggested name of the workload.',
  },
)

const ACKNOWLEDGE = '`true`, `1`, `yes` or `on`: an action that enforces is exported although the capture is partial.'
const acknowledgement = z.string().transform(saysYes)

const edits = (what: string) =>
  listOf(z.string().regex(SYSCALL_NAME, `expected ${SYSCALL_NAME.source}`), MAX_EDITS)
    .nullish()
    .transform((names) => names ?? [])
    .describe(what)

/** The query of an export. */
export const ExportQuery = z.object({
  name: name.default(null),
  defaultAction: defaultAction.default(LOG_ACTION),
  format: format.default('yaml'),
  acknowledgePartial: documentedAs(acknowledgement.default(false), {
    type: 'string',
    default: 'false',
    description: ACKNOWLEDGE,
  }),
})

/** The body of an export with staged edits. */
export const ExportBody = z
  .object({
    name: name.nullish().transform((one) => one ?? null),
    defaultAction: defaultAction.nullish().transform((one) => one ?? LOG_ACTION),
    format: format.nullish().transform((one) => one ?? 'yaml'),
    acknowledgePartial: z
      .union(
        [z.boolean(), z.string().meta({ pattern: NO_NULL_PATTERN }).transform(saysYes)],
        'expected true, false or a string',
      )
      .nullish()
      .transform((one) => one ?? false)
      .describe(ACKNOWLEDGE),
    add: edits('Names to allow beside those that were observed.'),
    remove: edits('Names not to allow. None may be in both lists.'),
  })
  .superRefine(({ add, remove }, c) => {
    const added = new Set(add)
    const at = remove.findIndex((one) => added.has(one))
    if (at >= 0) c.addIssue({ code: 'custom', path: ['remove', at], message: `${remove[at]} is also in add` })
  })
  .meta({ id: 'SeccompExport' })

export type ExportOptions = Readonly<z.output<typeof ExportBody>>
