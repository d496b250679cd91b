/** The types of edges by themselves, for code without a browser. */
import type { paths } from './schema.d.ts'

/** Who opens connections to whom: an item of `GET /flows/edges`. */
export type Edge = paths['/flows/edges']['get']['responses'][200]['content']['application/json']['items'][number]
export type Side = Edge['from']
