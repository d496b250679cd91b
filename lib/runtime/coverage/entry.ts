/** A heartbeat of a watched container as agents post it (docs/contract.md#runtime-coverage). */
import { z } from 'zod'
import { EntrySchema, field, flag, MAX_COUNT, naiveTime, oneOf, trimmed, whole } from '../../entries/index.ts'
import { digestOrEmpty } from '../digest-field.ts'

const MODES = ['exec', 'full'] as const
const START_MODES = ['start', 'backfill'] as const
const MAX_WORKLOAD_KIND_BYTES = 63
const MAX_CONTAINER_ID_CHARS = 128
const CONTAINER_ID = /^[A-Za-z0-9]+$/
const MAX_HEARTBEAT_SECS = 86_400
/** Functions of the kernel that agents attach to: every check of a capability, or only those of security modules. */
const CAPABILITY_HOOKS = ['cap_capable', 'security_capable'] as const

const count = (description: string) =>
  whole(0).nullish().describe(`${description} More than ${MAX_COUNT} counts as that.`)

/** An optional field may be absent or null; one of another type drops the entry. */
export const HeartbeatEntry = new EntrySchema(
  z
    .object({
      pod_namespace: trimmed(),
      pod_name: trimmed(),
      workload_kind: trimmed(MAX_WORKLOAD_KIND_BYTES)
        .nullish()
        .describe(
          'With `workload_name` or not at all: without both the workload is the pod, until a later heartbeat names ' +
            'one.',
        ),
      workload_name: trimmed().nullish(),
      container_name: trimmed(),
      image_digest: digestOrEmpty
        .nullish()
        .describe('Empty or absent where it is not resolved; a later heartbeat may name it.'),
      container_id: field(
        { type: 'string', maxLength: MAX_CONTAINER_ID_CHARS, pattern: CONTAINER_ID.source },
        (value) =>
          typeof value === 'string' && value.length <= MAX_CONTAINER_ID_CHARS && CONTAINER_ID.test(value)
            ? value
            : undefined,
      ).describe('Heartbeats of one id belong together.'),
      node_name: trimmed(),
      mode: oneOf(MODES),
      exec_probe: flag,
      lib_probe: flag,
      start_mode: oneOf(START_MODES).describe('Whether it is watched since it started.'),
      tracking_since: naiveTime.describe('Where it is later than the previous heartbeat, nobody watched in between.'),
      probe_attached_at: naiveTime.nullish(),
      events_dropped: count('Events lost since the previous heartbeat.'),
      unsent: count('Entries that wait to be sent.'),
      incomplete: flag.nullish(),
      ended: flag.nullish().describe('Whether the container has ended: no later heartbeat changes anything.'),
      heartbeat_at: naiveTime.describe('Where it is in the future, the time of the broker.'),
      heartbeat_secs: whole(1, MAX_HEARTBEAT_SECS).describe('Seconds to the next one.'),
      cap_probe: flag.nullish().describe('Whether checks of capabilities are counted. Without it, false.'),
      cap_hook: oneOf(CAPABILITY_HOOKS)
        .nullish()
        .describe('The function of the kernel where they are counted. Only `cap_capable` sees all of them.'),
    })
    .transform((entry, c) => {
      const [kind, name] = [entry.workload_kind ?? null, entry.workload_name ?? null]
      if ((kind === null) !== (name === null))
        c.issues.push({ code: 'custom', input: entry, path: [kind === null ? 'workload_kind' : 'workload_name'] })
      // Faster than a copy.
      return Object.assign(entry, {
        workload_kind: kind ?? 'Pod',
        workload_name: name ?? entry.pod_name,
        image_digest: entry.image_digest ?? '',
        probe_attached_at: entry.probe_attached_at ?? null,
        events_dropped: Math.min(entry.events_dropped ?? 0, MAX_COUNT),
        unsent: Math.min(entry.unsent ?? 0, MAX_COUNT),
        incomplete: entry.incomplete ?? false,
        ended: entry.ended ?? false,
        cap_probe: entry.cap_probe ?? false,
        cap_hook: entry.cap_hook ?? null,
      })
    }),
)

/** A heartbeat to be stored. Times are naive UTC; an unknown image is empty. */
export type Heartbeat = z.output<typeof HeartbeatEntry.schema>
