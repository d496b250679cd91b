/** Flags of output that all commands have. */

import type { ColorChoice } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { colorFlag, valued } from '../flags.ts'

const FORMATS = ['table', 'wide', 'json', 'ndjson', 'yaml', 'csv', 'name'] as const
const JSONPATH = 'jsonpath='

export type Format = (typeof FORMATS)[number] | 'jsonpath'

export interface OutputFlags {
  readonly output?: string
  readonly noHeaders?: boolean
  readonly utc?: boolean
  readonly color: ColorChoice
  readonly out?: string
  readonly printRequest?: boolean
}

const yes = (brief: string) => ({ kind: 'boolean', optional: true, withNegated: false, brief }) as const

export const outputFlags = {
  output: {
    ...valued('FORMAT', `${FORMATS.join(', ')}, ${JSONPATH}EXPRESSION; table by default.`),
    proposeCompletions: () => [...FORMATS, JSONPATH],
  },
  noHeaders: yes('Leave the line of headers out.'),
  utc: yes('Times in UTC, not in the time zone of this machine.'),
  color: colorFlag,
  out: valued('FILE', 'A file to write to, instead of stdout. It appears when it is whole.'),
  printRequest: yes('Print the request as a call of curl, without the token, and do not send it.'),
} as const

export const outputAliases = { o: 'output' } as const

/** @throws Failure for a format that is not known */
export function formatOf({ output = 'table' }: OutputFlags): { readonly format: Format; readonly expression: string } {
  if (output.startsWith(JSONPATH)) return { format: 'jsonpath', expression: output.slice(JSONPATH.length) }
  const format = FORMATS.find((one) => one === output)
  if (format !== undefined) return { format, expression: '' }
  throw new Failure(`--output: expected one of ${FORMATS.join(', ')}, ${JSONPATH}EXPRESSION`, EXIT.usage)
}

/** Whether a format shows rows, and not an answer as a whole. */
export const isOfRows = (flags: OutputFlags): boolean => !['json', 'yaml', 'jsonpath'].includes(formatOf(flags).format)
