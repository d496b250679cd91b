import { z } from 'zod'
import { access, NoParameters, query, route, sendJson, wireTime } from '../lib/http/index.ts'
import { isUpdateAvailable, type Releases } from '../lib/telemetry/check-in.ts'
import { parseNaive } from '../lib/time/timestamp.ts'
import { VERSION } from '../lib/version.ts'

const VersionRecord = z
  .strictObject({
    broker: z.string(),
    chart: z.string().describe('`unknown` outside the chart.'),
    telemetry_enabled: z.boolean(),
    latest: z
      .record(z.string(), z.string())
      .nullable()
      .describe('The latest version of each component, from the last version check.'),
    checked_at: wireTime.nullable(),
    update_available: z.boolean(),
  })
  .meta({ id: 'VersionRecord' })

interface LastAnswer {
  latest: Releases | null
  checked_at: string | null
}

/** GET /version: the running version, and the latest releases as the last check of any replica found them. */
export default route({ summary: 'Get the running version and the latest releases', answer: VersionRecord }).get(
  '/version',
  access('read'),
  query(NoParameters, { unknown: 'ignored' }),
  async (c) => {
    const { db, config } = c.get('deps')
    const isEnabled = config.telemetryEnabled && config.telemetryEndpoint !== null
    const rows = isEnabled
      ? await db.read((sql) => sql<LastAnswer[]>`select latest, to_json(checked_at) as checked_at from install`)
      : []
    const { latest, checked_at } = rows[0] ?? { latest: null, checked_at: null }
    const record = {
      broker: VERSION,
      chart: config.chartVersion,
      telemetry_enabled: isEnabled,
      latest,
      checked_at: checked_at && parseNaive(checked_at),
      update_available: isUpdateAvailable(config.chartVersion, latest),
    }
    return sendJson(c, JSON.stringify(record))
  },
)
