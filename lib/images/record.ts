import type { Deps } from '../app/deps.ts'
import { batchedWrite, type Database } from '../db/index.ts'
import { type InventoryPost, readContainers } from './inventory.ts'

/** The containers of one pod as JSON objects joined with commas. */
interface Item {
  pod: string
  text: string
}

/** JSON text in one statement: pods of any honest size share it by the dozen. */
const MAX_DOCUMENT_CHARS = 256 * 1024

const write = batchedWrite<Item>({
  key: ({ pod }) => pod,
  weight: ({ text }) => text.length,
  maxWeight: MAX_DOCUMENT_CHARS,
  run: (db, items) => {
    const document = `[${items.map(({ text }) => text).join(',')}]`
    return db.ingest((sql) => sql`select record_containers(${document}::text::json)`)
  },
})

/**
 * Writes the image inventory of a posted pod, once the pod itself is written (interop-core 1.1 and 9). Costs nothing when the post
 * has none. Never rejects: what goes wrong is logged, and the agent posts it again within a minute.
 */
export async function recordInventory(
  { db, log, metrics }: Pick<Deps, 'log' | 'metrics'> & { db: Database },
  post: InventoryPost,
): Promise<void> {
  if (post.containers === undefined || post.containers === null) return
  const where = { pod: post.pod_name, namespace: post.pod_namespace }
  try {
    const containers = readContainers(post, {
      malformed: (part) => metrics.imageMalformed.inc({ field: part }),
      warn: (message) => log.warn(where, message),
    })
    if (containers.length === 0) return
    await write(db, { pod: post.pod_name, text: containers.map((one) => JSON.stringify(one)).join(',') })
  } catch (err) {
    log.warn({ ...where, err }, 'the image inventory of a pod was not written')
  }
}
