import { z } from 'zod'
import { access, charge, codedErrors, HttpError, kib, params, query, route, sendJson } from '../../lib/http/index.ts'
import { ProfilePath } from '../../lib/profile/path.ts'
import {
  canonicalJson,
  diffOf,
  ProfileDiff,
  readPair,
  revisionNotFound,
  revisionOrNull,
  type StoredContent,
  VERSION_REFUSALS,
} from '../../lib/profile/versions/index.ts'

/** The read budget is charged this: two snapshots, as texts and parsed. */
const DIFF_BYTES = 512 * 1_024

const Query = z.object({
  from: revisionOrNull('The older revision, by default the newest one below `to`'),
  to: revisionOrNull('The newer revision, by default the newest one'),
})

const wrongOrder = () => new HttpError(400, 'Query deserialize error: from: expected a revision below to')

const nameOf = ({ revision, contentHash, createdAt }: StoredContent) => ({ revision, contentHash, createdAt })

/**
 * GET /workloads/{namespace}/{kind}/{name}/profile/diff: what changed between two versions
 * (docs/contract.md#workload-profiles).
 */
export default route({
  summary: 'Compare two versions of the profile of a workload',
  answer: ProfileDiff,
  also: VERSION_REFUSALS,
}).get(
  '/workloads/:namespace/:kind/:name/profile/diff',
  access('read'),
  codedErrors,
  params(ProfilePath),
  query(Query, { unknown: 'ignored' }),
  charge(kib(DIFF_BYTES)),
  async (c) => {
    const { read } = c.get('deps').db
    const workload = c.req.valid('param')
    const asked = c.req.valid('query')
    if (asked.from !== null && asked.to !== null && asked.from >= asked.to) throw wrongOrder()
    const { from, to } = await readPair(read, workload, asked.from, asked.to)
    if (to === null) throw await revisionNotFound(read, workload, `no version ${asked.to ?? ''} is stored`)
    if (asked.from !== null && from === null)
      throw await revisionNotFound(read, workload, `no version ${asked.from} is stored`)
    if (from !== null && from.revision >= to.revision) throw wrongOrder()
    const diff: ProfileDiff = {
      ...workload,
      from: from && nameOf(from),
      to: nameOf(to),
      changed: from?.contentHash !== to.contentHash,
      fromTrimmed: asked.from === null && (from?.revision ?? 0) < to.revision - 1,
      dimensions: diffOf(from, to),
    }
    return sendJson(c, canonicalJson(diff))
  },
)
