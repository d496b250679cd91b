/** The query of GET /workloads (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { cursorOf } from '../../http/request/cursor.ts'
import { filter, filterText, MAX_NAME_CHARS, pageLimit, text } from '../../http/request/fields.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { isLongerThan } from '../../text/utf8.ts'
import { STATUSES } from '../record/common.ts'

const DEFAULT_PROFILES = 100
const MAX_PROFILES = 500
const MAX_SEARCH_BYTES = MAX_NAME_CHARS

type Place = [namespace: string, kind: string, name: string]

const part = text.refine((one) => one !== '' && one.isWellFormed())

// Only the name may contain a slash as it is.
const escaped = (one: string) => one.replaceAll('%', '%25').replaceAll('/', '%2F')
const unescaped = (one: string) => one.replaceAll('%2F', '/').replaceAll('%25', '%')

/** The `nextAfter` of a page that ends with this workload: `<namespace>/<kind>/<name>`. */
export const writeAfter = ([namespace, kind, name]: Place): string => `${escaped(namespace)}/${escaped(kind)}/${name}`

function readAfter(sent: string): Place {
  const [, namespace, kind, name] = /^([^/]*)\/([^/]*)\/(.*)$/s.exec(sent)!
  return [unescaped(namespace!), unescaped(kind!), name!]
}

const blankIsNull = (sent: unknown) => (typeof sent === 'string' && sent.trim() === '' ? null : sent)

export const ListQuery = z.object({
  namespace: filter('Only workloads of this namespace'),
  kind: filter('Only workloads of this kind'),
  status: documentedAs(
    z.preprocess(
      blankIsNull,
      z
        .enum(STATUSES, `expected one of ${STATUSES.join(', ')}`)
        .nullable()
        .default(null),
    ),
    {
      type: 'string',
      enum: ['', ...STATUSES],
      description: 'Only workloads with this posture. `unknown` finds those without a profile, too.',
    },
  ),
  search: documentedAs(
    filterText.refine(
      (sent) => sent === null || !isLongerThan(sent, MAX_SEARCH_BYTES),
      `expected at most ${MAX_SEARCH_BYTES} bytes`,
    ),
    {
      type: 'string',
      pattern: `^[ -~]{0,${MAX_SEARCH_BYTES}}$`,
      description: `Only workloads with this in their name, in any case; at most ${MAX_SEARCH_BYTES} bytes.`,
    },
  ),
  include_gone: documentedAs(
    z.preprocess(
      blankIsNull,
      z
        .enum(['true', 'false'], 'expected true or false')
        .nullable()
        .default(null)
        .transform((sent) => sent === 'true'),
    ),
    { type: 'boolean', default: false, description: 'With `true`, workloads without a live pod, too.' },
  ),
  limit: pageLimit(DEFAULT_PROFILES, MAX_PROFILES),
  after: documentedAs(cursorOf(z.tuple([part, part, part]), readAfter, writeAfter), {
    type: 'string',
    'x-opaque': true,
    description: 'The `nextAfter` of the page before, unchanged; blank is the first page.',
  }),
})
export type ListQuery = z.output<typeof ListQuery>
