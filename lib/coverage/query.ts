/** The parameters of GET /coverage (docs/contract.md#coverage-report). */
import { z } from 'zod'
import { cursor, cursorText } from '../http/request/cursor.ts'
import { clamped, filter, flag, pageLimit } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { windowHours } from '../runtime/reads/index.ts'
import { placeLength } from './read.ts'
import { PARTS, type Part } from './record.ts'

const DEFAULT_DAYS = 30
const MAX_DAYS = 3_650
const DEFAULT_ROWS = 100
const MAX_ROWS = 500

/** A cursor names its part, so that it continues no other list. */
const places = PARTS.map((part) => z.tuple([z.literal(part), ...Array(placeLength(part)).fill(cursorText)]))
type PartCursor = readonly [Part, ...string[]]

export const CoverageQuery = z
  .object({
    namespace: filter('Only what runs in this namespace'),
    part: documentedAs(z.enum(PARTS).optional(), {
      type: 'string',
      enum: [...PARTS],
      description: 'Only this part, which can be read page by page. Without it the first rows of each part are listed.',
    }),
    older_than_days: clamped(DEFAULT_DAYS, MAX_DAYS, 'Days after which the newest scan of an image is old'),
    window_hours: windowHours,
    include_known: flag(false, 'With `true`, rows of which nothing is missing are listed too.'),
    totals: flag(true, 'With `false`, nothing is counted: the first page of a large cluster is faster.'),
    limit: pageLimit(DEFAULT_ROWS, MAX_ROWS),
    after: cursor(z.union(places) as unknown as z.ZodType<PartCursor>),
  })
  .superRefine(({ part, after }, c) => {
    if (after !== null && after[0] !== part)
      c.addIssue({ code: 'custom', path: ['after'], message: 'expected the nextAfter of a page of this `part`' })
  })
