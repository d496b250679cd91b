/** The query of an export (docs/contract.md#workload-profiles). A blank value counts as absent. */
import { z } from 'zod'
import { saysYes } from '../../http/request/fields.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { ARTIFACTS, type Artifact, FORMATS, MODES } from './document.ts'

/** One of these words; the first one where the text is blank. */
const oneOf = <W extends string>(words: readonly [W, ...W[]], what: string) =>
  documentedAs(
    z
      .string()
      .default('')
      .transform((text, c) => {
        if (text.trim() === '') return words[0]
        const word = words.find((one) => one === text)
        if (word !== undefined) return word
        c.addIssue({ code: 'custom', message: `expected ${words.join(' or ')}` })
        return z.NEVER
      }),
    { type: 'string', enum: [...words, ''], default: words[0], description: what },
  )

const flag = (what: string) =>
  documentedAs(z.string().default('').transform(saysYes), {
    ...{ type: 'string', default: 'false' },
    description: `\`true\`, \`1\`, \`yes\` or \`on\`: ${what}`,
  })

const RULE = `expected a list of ${ARTIFACTS.join(', ')}`

const artifacts = documentedAs(
  z
    .string()
    .default('')
    .transform((text, c): readonly Artifact[] => {
      if (text.trim() === '') return ARTIFACTS
      const words = text
        .split(',')
        .map((word) => word.trim().toLowerCase())
        .filter((word) => word !== '')
      const wanted = ARTIFACTS.filter((one) => words.includes(one))
      if (wanted.length > 0 && words.every((word) => (ARTIFACTS as readonly string[]).includes(word))) return wanted
      c.addIssue({ code: 'custom', message: RULE })
      return z.NEVER
    }),
  {
    type: 'string',
    pattern: `^(?:(?:${ARTIFACTS.join('|')})(?:,(?:${ARTIFACTS.join('|')}))*)?$`,
    description:
      `A comma list of ${ARTIFACTS.map((one) => `\`${one}\``).join(', ')}, in any case; all of them by default. ` +
      'They are answered in this order.',
  },
)

const parameters = {
  artifacts,
  mode: oneOf(MODES, '`audit`: objects that report; `enforce`: objects that block.'),
  format: oneOf(FORMATS, '`yaml`: a stream to apply; `zip-manifest`: JSON with the files.'),
  acknowledgePartial: flag('objects that block are made although what they are made from is not complete.'),
}

/** The query of POST, which records whatever `record` says. */
export const RecordQuery = z.object(parameters)
export type ExportQuery = z.output<typeof RecordQuery>

/** The query of GET, which stores nothing. */
export const ReadQuery = z.object({
  ...parameters,
  record: documentedAs(
    z
      .string()
      .optional()
      .refine((word) => word === undefined || !saysYes(word), 'GET records nothing: use POST'),
    { type: 'string', enum: ['', 'false'], description: 'Refused where it says yes: only `POST` records an export.' },
  ),
})
