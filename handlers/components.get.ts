import { z } from 'zod'
import { access, chargeRows, filter, filterText, pageLimit, query, route, sendJson } from '../lib/http/index.ts'
import { cursor, cursorText } from '../lib/http/request/cursor.ts'
import { documentedAs } from '../lib/openapi/declare.ts'
import { isPurl, lowerAscii, readPurl } from '../lib/search/index.ts'
import { HeldComponentPage, readHeldComponents } from '../lib/supply-chain/component-list.ts'
import { running, useStates } from '../lib/supply-chain/filters.ts'

const DEFAULT_COMPONENTS = 25
const MAX_COMPONENTS = 500
/** The read budget is charged this for each component: names, tags, and ten workloads. */
const COMPONENT_BYTES = 12 * 1_024

const Query = z
  .object({
    name: filter(
      'Only packages with this name, or this artifact where the name is `group:artifact`; letters from A to Z in any ' +
        'case',
    ),
    purl: documentedAs(
      filterText
        .transform((text) => text?.trim() ?? null)
        .refine((text) => text === null || isPurl(text), 'expected a package URL, which begins with pkg:'),
      {
        type: 'string',
        pattern: `^\\s*$|^pkg:[^\\u0000]*$`,
        description:
          'Only packages with this package URL. Without a version, any version and any qualifiers; without qualifiers, ' +
          'any qualifiers. A package without a URL counts by its name. Blank is no filter.',
      },
    ),
    version: filter('Only packages of this exact version'),
    running,
    in_use: useStates,
    limit: pageLimit(DEFAULT_COMPONENTS, MAX_COMPONENTS),
    after: cursor(z.tuple([z.int().min(0).max(1), cursorText, cursorText, cursorText, cursorText, cursorText])),
  })
  .refine(({ name, purl }) => name !== null || purl !== null, {
    path: ['name'],
    message: 'expected `name` or `purl`, or both',
  })

/** GET /components: which images and workloads hold a package, by version (docs/contract.md#search). */
export default route({
  summary: 'Find the images that hold a package',
  description:
    'One item for each name, version, package URL, type and image, the images that run first. An image without an ' +
    'SBOM is found by its reports of vulnerabilities, which name only packages that have some.',
  answer: HeldComponentPage,
}).get('/components', access('read'), query(Query), chargeRows<typeof Query>(COMPONENT_BYTES, 1), async (c) => {
  const { db, config } = c.get('deps')
  const { name, purl, version, running, in_use: states, limit, after } = c.req.valid('query')
  const asked = {
    name: name && lowerAscii(name.trim()),
    purl: purl === null ? null : readPurl(purl),
    version,
    running,
    states,
  }
  return sendJson(c, await readHeldComponents(db.read, asked, { limit, after }, config))
})
