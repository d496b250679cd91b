import { z } from 'zod'
import type { Sql } from '../lib/db/index.ts'
import { access, chargeRows, filter, pageLimit, query, route, sendJson } from '../lib/http/index.ts'
import { afterDigest, ImagePage, ImageSummary } from '../lib/images/index.ts'
import { plainColumns, plainRows } from '../lib/records/index.ts'

const DEFAULT_IMAGES = 100
const MAX_IMAGES = 500
/** The read budget is charged this for each image. */
const IMAGE_BYTES = 1_024

const Query = z.object({
  namespace: filter('Only images with containers in this namespace; counts only these containers'),
  repository: filter('Only images of this repository'),
  limit: pageLimit(DEFAULT_IMAGES, MAX_IMAGES),
  after: afterDigest,
})
type Page = z.output<typeof Query>

const COLUMNS = plainColumns(ImageSummary, 'm')

/** The images of a page and one more, in their order, each found by an index. */
function images(sql: Sql, { namespace, repository, limit, after }: Page) {
  const max = limit + 1
  if (namespace === null && repository === null)
    return sql`select * from image where digest > ${after} order by digest limit ${max}`
  if (namespace === null)
    return sql`select * from image where repository = ${repository} and digest > ${after} order by digest limit ${max}`
  if (repository !== null)
    return sql`
      select m.* from image m
      where m.repository = ${repository} and m.digest > ${after}
        and exists (select from workload_container w where w.pod_namespace = ${namespace} and w.image_digest = m.digest)
      order by m.digest limit ${max}`
  // Steps from digest to digest in the index, since a namespace has many rows of each digest.
  return sql`
      with recursive found (digest) as (
        (select w.image_digest from workload_container w
         where w.pod_namespace = ${namespace} and w.image_digest > ${after} order by w.image_digest limit 1)
        union all
        select (select w.image_digest from workload_container w
                where w.pod_namespace = ${namespace} and w.image_digest > f.digest order by w.image_digest limit 1)
        from found f where f.digest is not null)
      select m.*
      from (select f.digest from found f where f.digest is not null limit ${max}) f
      join image m on m.digest = f.digest`
}

/** GET /images: the image inventory by digest; `after` is the last digest of a page (docs/contract.md#images). */
export default route({ summary: 'List the images of the cluster', answer: ImagePage }).get(
  '/images',
  access('read'),
  query(Query),
  chargeRows<typeof Query>(IMAGE_BYTES, 1),
  async (c) => {
    const { db, config } = c.get('deps')
    const page = c.req.valid('query')
    const { namespace, limit } = page
    const rows = await db.read((sql) =>
      sql`
        select ${sql.unsafe(COLUMNS)}
        from (select i.*, (
                select count(*) from workload_container w
                where w.image_digest = i.digest and (${namespace}::text is null or w.pod_namespace = ${namespace})
                  and is_running(w, ${config.imageRunningWindowSecs})) as running_containers
              from (${images(sql, page)}) i) m
        order by m.digest`.raw(),
    )
    const items = rows.slice(0, limit)
    const nextAfter = rows.length > limit ? String(items.at(-1)![0]) : null
    return sendJson(c, `{"items":[${plainRows(ImageSummary, items)}],"nextAfter":${JSON.stringify(nextAfter)}}`)
  },
)
