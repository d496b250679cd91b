/** The culprits that a container waited for (docs/contract.md#compute). */
import { z } from 'zod'
import { EntrySchema, field, jsonSchemaOf } from '../entries/index.ts'
import { MAX_UID_BYTES } from './container.ts'
import { anyText, count, id, textOrNull } from './fields.ts'

const MAX_KIND_BYTES = 64
/** Namespace, pod and container with two slashes fit. */
const MAX_REF_BYTES = 1_024
/** Culprits in a latest sample. More would bloat the table. */
const MAX_LISTED = 5
/** Limit of their JSON together. */
const MAX_LISTED_BYTES = 1_024
/** The sum of omitted waits stops here, so that it stays an exact integer. */
const MAX_SUM = Number.MAX_SAFE_INTEGER

/** A group of processes that made a container wait. */
export const Culprit = new EntrySchema(
  z.object({
    cgroup_id: id,
    kind: anyText(MAX_KIND_BYTES).describe('`pod`, `system`, `kernel` or `unknown`.'),
    ref: anyText(MAX_REF_BYTES).describe('`namespace/pod/container`, a unit, or a group.'),
    container_uid: textOrNull(MAX_UID_BYTES),
    count: count(),
    wait_ns: count(),
  }),
)
export type Culprit = z.output<typeof Culprit.schema>

export interface Blame {
  /** In the order sent. */
  readonly culprits: Culprit[]
  /** Entries that name no valid culprit. */
  readonly bad: number
}

/** The field `blame` of a container. A bad culprit does not drop the container. */
export const blame = field<Blame>(jsonSchemaOf(z.array(Culprit.schema).nullish()), (sent) => {
  if (!Array.isArray(sent)) return { culprits: [], bad: 0 }
  const culprits: Culprit[] = []
  for (const entry of sent) {
    const { value, issues } = Culprit.run(entry)
    if (issues.length === 0) culprits.push(value)
  }
  return { culprits, bad: sent.length - culprits.length }
})

/**
 * Returns the longest waits as a JSON array, the longest first, and the number and sum of the others. Equal waits keep
 * the order sent. The first culprit that does not fit ends the list.
 */
export function shortened(culprits: Culprit[]): { json: string; omitted: number; omittedWaitNs: number } {
  culprits.sort((a, b) => b.wait_ns - a.wait_ns)
  const listed: string[] = []
  // One byte for the opening bracket; each entry adds one for the comma or bracket that follows it.
  let bytes = 1
  for (const culprit of culprits.slice(0, MAX_LISTED)) {
    const text = jsonOf(culprit)
    bytes += Buffer.byteLength(text) + 1
    if (bytes > MAX_LISTED_BYTES) break
    listed.push(text)
  }
  let omittedWaitNs = 0
  for (let i = listed.length; i < culprits.length; i++) omittedWaitNs += culprits[i]!.wait_ns
  return {
    json: `[${listed.join(',')}]`,
    omitted: culprits.length - listed.length,
    omittedWaitNs: Math.min(omittedWaitNs, MAX_SUM),
  }
}

// Not by JSON.stringify, which refuses the id: a bigint.
const jsonOf = ({ cgroup_id, kind, ref, container_uid, count, wait_ns }: Culprit): string =>
  `{"cgroup_id":${cgroup_id},"kind":${JSON.stringify(kind)},"ref":${JSON.stringify(ref)},` +
  `"container_uid":${JSON.stringify(container_uid)},"count":${count},"wait_ns":${wait_ns}}`
