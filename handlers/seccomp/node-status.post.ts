import { fixed } from '../../lib/db/index.ts'
import { access, body, respondEmpty, route } from '../../lib/http/index.ts'
import { fileSetOf, PostedNodeFiles, readNodeFiles } from '../../lib/seccomp/index.ts'

const ROUTE = '/seccomp/node-status'

const touch = fixed<{ found: boolean }[]>(`
  update seccomp_node set updated_at = clock_timestamp() at time zone 'utc'
  where node_name = $1::text and file_set_id = decode($2::text, 'hex')
  returning true as found`)

const move = fixed(`select post_node_files($1::text, decode($2::text, 'hex'), $3::text::json)`)

/**
 * POST /seccomp/node-status: the profile files of a node, replacing its last list; the answer is empty
 * (docs/contract.md#seccomp-distribution). Posts carry no time, so the last one written wins.
 */
export default route({
  summary: 'Store which profile files a node has',
  description: 'A snapshot: it replaces the last list of the node.',
  answer: null,
}).post(ROUTE, access('ingest'), body(PostedNodeFiles), async (c) => {
  const { db, rejections } = c.get('deps')
  const posted = c.req.valid('json')
  const { files, skipped } = await readNodeFiles(posted)
  const { id, paths, hashes } = await fileSetOf(files)
  // A node keeps the same files for days, so the list is sent to the database only if it is new.
  const touched = await db.ingest((sql) => touch(sql, posted.node_name, id))
  if (touched.length === 0) await db.ingest((sql) => move(sql, posted.node_name, id, JSON.stringify({ paths, hashes })))
  rejections.note(ROUTE, skipped, 'a node has files that cannot be told: skipped')
  return respondEmpty(c, 200)
})
