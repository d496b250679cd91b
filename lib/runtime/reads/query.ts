/** Query parameters that the read routes of the runtime inventory share (docs/contract.md#executables). */
import { z } from 'zod'
import {
  clamped,
  filterText,
  MAX_NAME_CHARS,
  orFirstPage,
  pageLimit,
  pathText,
  text,
} from '../../http/request/fields.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { isLongerThan } from '../../text/utf8.ts'
import { KINDS, ORIGINS } from '../executables/index.ts'
import { UNSHIPPED_ORIGINS } from './record.ts'

const MAX_PATH_BYTES = 4_096
const MAX_NAME_BYTES = MAX_NAME_CHARS
const NAME_RULE = `expected at most ${MAX_NAME_BYTES} bytes`

/**
 * Memory in bytes to reserve for an entry while its list is built, and entries to add: one more than the limit, and 200
 * of coverage.
 */
export const ENTRY_BYTES = 2_048
export const MORE_ENTRIES = 1 + 200

export const limit = pageLimit(1_000, 5_000)
export const windowHours = clamped(24, 720, 'Hours that coverage is about')

const isOneOf = <T extends string>(words: readonly T[], word: string): word is T =>
  (words as readonly string[]).includes(word)

/** A filter that accepts one of `words`; null if it is absent or blank. */
const oneOf = <T extends string>(words: readonly T[], what: string) =>
  documentedAs(
    filterText.transform((word, c) => {
      if (word === null || isOneOf(words, word)) return word
      c.addIssue({ code: 'custom', message: `expected one of ${words.join(', ')}` })
      return z.NEVER
    }),
    { type: 'string', enum: [...words, ''], description: `${what}; blank is no filter.` },
  )

export const kind = oneOf(KINDS, 'Entries of this kind')

/** The origins that match; null for all. */
export const origins = oneOf(
  [...ORIGINS, 'unshipped'],
  'Entries of this origin, `unshipped` for deleted, writableLayer and memfd',
).transform((word): readonly string[] | null =>
  word === 'unshipped' ? UNSHIPPED_ORIGINS : word === null ? null : [word],
)

export const container = documentedAs(
  filterText.refine((name) => name === null || !isLongerThan(name, MAX_NAME_BYTES), NAME_RULE),
  {
    type: 'string',
    pattern: `^[ -~]{0,${MAX_NAME_BYTES}}$`,
    description: `Only this container, in \`coverage\` too; at most ${MAX_NAME_BYTES} bytes, blank is no filter.`,
  },
)

const workloadText = pathText
  .refine((name) => name.trim() !== '', 'must not be blank')
  .refine((name) => !isLongerThan(name, MAX_NAME_BYTES), NAME_RULE)

/** A part of the URL path that names a workload. */
export const workloadPart = (what: string) =>
  documentedAs(workloadText, {
    type: 'string',
    pattern: `^[!-~]{1,${MAX_NAME_BYTES}}$`,
    description: `${what}; not blank, at most ${MAX_NAME_BYTES} bytes.`,
  })

/** Such a part that has no `/` in it, as the routes of workload profiles want it. */
export const workloadSegment = (what: string) =>
  documentedAs(
    workloadText.refine((name) => !name.includes('/'), 'must not contain /'),
    {
      type: 'string',
      pattern: `^[!-.0-~]{1,${MAX_NAME_BYTES}}$`,
      description: `${what}; not blank, at most ${MAX_NAME_BYTES} bytes, without \`/\`.`,
    },
  )

export interface Place {
  readonly kind: string
  readonly path: string
}

/** The cursor of the next page. Nothing is escaped, so it may contain any character that a path may. */
export const writeCursor = ({ kind, path }: Place): string => `${kind}:${path}`

/** `after`: null on the first page. */
export const after = documentedAs(
  orFirstPage(
    text.transform((cursor, c): Place => {
      const colon = cursor.indexOf(':')
      const [kind, path] = [cursor.slice(0, Math.max(colon, 0)), cursor.slice(colon + 1)]
      if (isOneOf(KINDS, kind) && path !== '' && !isLongerThan(path, MAX_PATH_BYTES)) return { kind, path }
      c.addIssue({ code: 'custom', message: 'expected the nextCursor of a page: exec: or lib:, and a path' })
      return z.NEVER
    }),
    null,
  ),
  {
    type: 'string',
    pattern: '^\\s*$|^(exec|lib):[^\\u0000]+$',
    description: 'The `nextCursor` of the page before, `<kind>:<path>`.',
  },
)
