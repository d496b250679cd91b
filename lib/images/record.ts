import { batchedWrite, type Database } from '../db/index.ts'
import type { Deps } from '../http/route.ts'
import { type InventoryPost, readContainers } from './inventory.ts'

/** The containers of one pod as JSON objects joined with commas. */
interface Item {
  pod: string
  text: string
}

/** Characters of JSON in one statement; dozens of ordinary pods fit. */
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
 * Writes the image inventory of a posted pod, after the pod itself (docs/contract.md#images). Never rejects: a failure
 * is logged, and the agent posts the pod again within a minute.
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
