import { z } from 'zod'
import { access, charge, clamped, HttpError, kib, params, query, route, sendJson } from '../../lib/http/index.ts'
import { Exposure, vulnerabilityId } from '../../lib/supply-chain/exposure.ts'
import { wireSourcesJson } from '../../lib/wire-names/index.ts'

const DEFAULT_WINDOW_HOURS = 168
const MAX_WINDOW_HOURS = 720
/** The read budget is charged this: 200 images with 50 packages each, and 200 workloads. */
const MAX_BYTES = 8 * 1024 * 1024

const NOT_AFFECTED = 'No affected image in the inventory'

const Params = z.object({ id: vulnerabilityId })
const Query = z.object({
  window_hours: clamped(DEFAULT_WINDOW_HOURS, MAX_WINDOW_HOURS, 'Hours of flows that are searched'),
})

/**
 * GET /vulnerabilities/{id}/exposure: the images with a vulnerability, the containers that run them, and the peers that
 * were seen to reach these (docs/contract.md#findings).
 */
export default route({
  summary: 'Get where a vulnerability runs and what reaches it',
  answer: Exposure,
  also: { 404: NOT_AFFECTED },
}).get(
  '/vulnerabilities/:id/exposure',
  access('read'),
  params(Params),
  query(Query),
  charge(kib(MAX_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const { id } = c.req.valid('param')
    const { window_hours } = c.req.valid('query')
    const found = await db.read.json(
      (sql) => sql`
      select cve_exposure(${id}, ${window_hours}, ${config.imageRunningWindowSecs},
                          ${wireSourcesJson(config.wireNames)}::text::jsonb)`,
    )
    if (found === null) throw new HttpError(404, NOT_AFFECTED)
    return sendJson(c, found)
  },
)
