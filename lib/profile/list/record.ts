/** The answer of GET /workloads (docs/contract.md#workload-profiles). Keys are sorted. */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { storedJson } from '../../records/column-kinds.ts'
import { contentHash } from '../record/profile.ts'
import { FindingCounts, SummaryDimensions, SummaryDrift, SummaryPosture } from '../versions/index.ts'

const time = () => zonedTime.nullable()

export const ListedProfile = z
  .strictObject({
    clusterId: z.string(),
    computedAt: time().describe('Null: every attempt so far failed, and nothing is known.'),
    contentHash: contentHash.nullable(),
    dimensions: storedJson(SummaryDimensions),
    drift: storedJson(SummaryDrift.nullable()),
    failedAt: time().describe('When the newest attempt failed; null if it did not.'),
    findingCounts: storedJson(FindingCounts.nullable()),
    kind: z.string(),
    lastChangedAt: time().describe('When `contentHash` became what it is.'),
    lastError: z.string().nullable().describe('Why it failed.'),
    name: z.string(),
    namespace: z.string(),
    posture: storedJson(SummaryPosture),
    revision: z.int().min(1).nullable(),
  })
  .meta({ id: 'ListedProfile' })

export const ListedProfilePage = z
  .strictObject({
    items: z.array(ListedProfile),
    nextAfter: z.string().nullable().describe('`after` of the next page; null on the last one.'),
  })
  .meta({ id: 'ListedProfilePage' })
