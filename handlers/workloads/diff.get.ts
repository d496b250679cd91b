import { z } from 'zod'
import { readRange } from '../../lib/changes/read/range.ts'
import { WorkloadDiff } from '../../lib/changes/record.ts'
import { workloadDiff } from '../../lib/changes/workload-diff.ts'
import { moment } from '../../lib/flows/parameters.ts'
import { access, charge, kib, noData, params, query, route, sendJson } from '../../lib/http/index.ts'
import { isKnownWorkload } from '../../lib/profile/known.ts'
import { ProfilePath } from '../../lib/profile/path.ts'

/** The read budget is charged this: twice 20 000 rows that differ, 10 000 edges, and the answer. */
const DIFF_BYTES = 24 * 1_024 * 1_024

const Query = z.object({
  from: moment('The older time, by default seven days before `to`'),
  to: moment('The newer time, by default now'),
})

/**
 * GET /workloads/{namespace}/{kind}/{name}/diff: what changed in a workload from one time to another
 * (docs/contract.md#changes). What was not recorded at the older time is null, with the reason, and never new.
 */
export default route({
  summary: 'Compare a workload at two times',
  description:
    'Images, and between them components, findings and signatures as they are known now; edges, files and syscalls ' +
    'that were seen for the first time; confinement. A part that is null has its reasons in `notKnown`.',
  answer: WorkloadDiff,
  also: { 404: 'No data found' },
}).get(
  '/workloads/:namespace/:kind/:name/diff',
  access('read'),
  params(ProfilePath),
  query(Query),
  charge(kib(DIFF_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const workload = c.req.valid('param')
    const range = await readRange(db.read, { name: 'from', ...c.req.valid('query'), maxDays: 0 })
    if (!(await isKnownWorkload(db.read, workload))) throw noData()
    return sendJson(c, JSON.stringify(await workloadDiff(db.read, workload, range, config)))
  },
)
