/** The row that decided a reason (docs/contract.md#reason-details). */
import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'

const CAUSES = [
  ...['last_heartbeat', 'never_watched', 'exec_probe_missing', 'library_probe_missing', 'mode_exec', 'events_dropped'],
  ...['events_unsent', 'inventory_incomplete', 'path_cut', 'silent', 'late_heartbeat', 'probe_restart', 'probe_change'],
  ...['late_start', 'unwatched_pod', 'watched_since', 'capability_probe_missing', 'capability_hook_partial'],
  ...['capability_probe_change', 'drain_late', 'probe_detached', 'unattributed', 'unattributed_file'],
] as const

export const ReasonDetail = z
  .strictObject({
    cause: z.enum(CAUSES),
    containerId: z.string().nullable(),
    podName: z.string().nullable(),
    nodeName: z.string().nullable(),
    at: wireTime.nullable().describe('The time that `cause` is about, naive UTC; null where there is none.'),
  })
  .meta({ id: 'ReasonDetail', description: 'The row that decided. Null where no single row did.' })
