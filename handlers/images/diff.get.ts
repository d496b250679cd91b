import { z } from 'zod'
import { imageDiff } from '../../lib/changes/image-diff.ts'
import { ImageDiff } from '../../lib/changes/record.ts'
import { access, charge, kib, NoParameters, params, query, route, sendJson } from '../../lib/http/index.ts'
import { digest } from '../../lib/images/index.ts'

/** The read budget is charged this: twice 20 000 rows that differ, the files of both images, and the answer. */
const DIFF_BYTES = 24 * 1_024 * 1_024

const Params = z.object({ digest, other: digest })

/**
 * GET /images/{digest}/diff/{other}: what changed from an image to a newer one (docs/contract.md#changes). Always 200:
 * what is not known of either is null, with the reason.
 */
export default route({
  summary: 'Compare two images',
  description:
    'Components, findings, signatures and files that ran, of both images as they are known now. A part that is null ' +
    'has its reasons in `notKnown`.',
  answer: ImageDiff,
}).get(
  '/images/:digest/diff/:other',
  access('read'),
  params(Params),
  query(NoParameters),
  charge(kib(DIFF_BYTES)),
  async (c) => {
    const { db, config } = c.get('deps')
    const { digest, other } = c.req.valid('param')
    return sendJson(c, JSON.stringify(await imageDiff(db.read, digest, other, config)))
  },
)
