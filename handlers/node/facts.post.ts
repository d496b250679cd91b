import { z } from 'zod'
import { batchedWrite } from '../../lib/db/batcher.ts'
import {
  access,
  body,
  HttpError,
  NO_NULL_PATTERN,
  NOT_BLANK_PATTERN,
  naiveTime,
  route,
  sendJson,
} from '../../lib/http/index.ts'
import { documentedAs } from '../../lib/openapi/declare.ts'

const MAX_FIELD_BYTES = 253

const boundedText = (pattern: string, description: string) =>
  documentedAs(z.string(), { type: 'string', maxLength: MAX_FIELD_BYTES, pattern, description })
const fact = boundedText(NO_NULL_PATTERN, `At most ${MAX_FIELD_BYTES} bytes.`)

const NodeFacts = z.object({
  node_name: boundedText(NOT_BLANK_PATTERN, `Not blank, at most ${MAX_FIELD_BYTES} bytes.`),
  provider: fact,
  distro: fact,
  cni: fact,
  ip_family: fact,
  node_os: fact,
  policy_enforcement: z.enum(['enforced', 'unenforced', 'unknown']).nullish(),
  time_stamp: naiveTime.nullish(),
})
type NodeFacts = z.output<typeof NodeFacts>

const upsert = batchedWrite<NodeFacts>({
  key: (facts) => facts.node_name,
  run: (db, facts) =>
    db.ingest(
      (sql) => sql`
  insert into node_facts as f (node_name, provider, distro, cni, ip_family, node_os, policy_enforcement, time_stamp)
  select i.node_name, i.provider, i.distro, i.cni, i.ip_family, i.node_os, i.policy_enforcement,
         coalesce(i.time_stamp, now() at time zone 'utc')
  from json_to_recordset(${JSON.stringify(facts)}::text::json) as i(
    node_name text, provider text, distro text, cni text, ip_family text, node_os text, policy_enforcement text,
    time_stamp timestamp)
  order by i.node_name
  on conflict (node_name) do update set
    provider           = excluded.provider,
    distro             = excluded.distro,
    cni                = excluded.cni,
    ip_family          = excluded.ip_family,
    node_os            = excluded.node_os,
    policy_enforcement = excluded.policy_enforcement,
    time_stamp         = excluded.time_stamp`,
    ),
})

/** POST /node/facts: the platform of a node, replacing its last facts; returns null (docs/contract.md#node-facts). */
export default route({ summary: 'Store the platform of a node', answer: z.null() }).post(
  '/node/facts',
  access('ingest'),
  body(NodeFacts),
  async (c) => {
    const facts = c.req.valid('json')
    if (facts.node_name.trim() === '') throw new HttpError(400, 'node_name must not be empty')
    for (const [field, value] of Object.entries(facts))
      if (Buffer.byteLength(value ?? '') > MAX_FIELD_BYTES)
        throw new HttpError(400, `field too long: ${field}: more than ${MAX_FIELD_BYTES} bytes`)
    await upsert(c.get('deps').db, facts)
    return sendJson(c, 'null')
  },
)
