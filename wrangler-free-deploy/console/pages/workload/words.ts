/** Words for codes of the broker. A code without words is shown as it is. */
import type { JsonAnswer } from '../../api/answers.ts'
import { plainText, reasonText } from '../../parts/reason-words.ts'
import type { Tone } from '../../parts/tone.ts'

export type Profile = JsonAnswer<'/workloads/{namespace}/{kind}/{name}/profile'>
export type Status = Profile['posture']['status']
export type ReasonDetail = NonNullable<Profile['capabilities']['containers'][number]['reasonDetail']>

export const STATUS_TONES: Readonly<Record<Status, Tone>> = { ok: 'good', warn: 'warn', risk: 'bad', unknown: 'plain' }

const CAUSES: Readonly<Record<ReasonDetail['cause'], string>> = {
  last_heartbeat: 'the last heartbeat was before the window',
  never_watched: 'nobody ever watched it',
  exec_probe_missing: 'without the probe for executed files, at the latest since',
  library_probe_missing: 'without the probe for libraries, at the latest since',
  mode_exec: 'only executed files are watched, at the latest since',
  events_dropped: 'events were lost, the last',
  events_unsent: 'at the last heartbeat',
  inventory_incomplete: 'the agent says that its list is not complete, at the last heartbeat',
  path_cut: 'a path is cut; the file ran last',
  unattributed_file: 'a file ran before its image or workload was known; it ran last',
  silent: 'silent since the heartbeat of',
  late_heartbeat: 'a heartbeat was late; watched again since',
  probe_restart: 'the probe was started anew; watched again since',
  probe_change: 'the probes changed; watched so since',
  late_start: 'it ran before it was watched; watched since',
  unwatched_pod: 'a live pod runs it and nobody watches it there; the last heartbeat there',
  watched_since: 'watched without a gap, but only since',
  capability_probe_missing: 'at the latest since',
  capability_hook_partial: 'at the latest since',
  capability_probe_change: 'the probe for capabilities changed; watched so since',
  drain_late: 'the last report of denials is late, of',
  probe_detached: 'the probe for denials is not attached, as of',
  unattributed: 'the newest of them was seen last',
}

/** The cause in words, to be followed by its time. */
export const causeText = ({ cause }: Pick<ReasonDetail, 'cause'>): string => CAUSES[cause] ?? plainText(cause)

/** The place of a cause: `pod web-1, node node-1`. */
export const placeText = ({ podName, nodeName }: Pick<ReasonDetail, 'podName' | 'nodeName'>): string =>
  [podName && `pod ${podName}`, nodeName && `node ${nodeName}`].filter(Boolean).join(', ')

export const DIMENSIONS = {
  network: 'Network',
  syscalls: 'Syscalls',
  podSecurity: 'Pod security',
  images: 'Images',
  compute: 'Compute',
  drift: 'Drift',
} as const

const DRIFTS: Readonly<Record<string, string>> = {
  tagMoved: 'A tag moved',
  imageChangedSinceExport: 'An image is not that of the last export',
  securityContextRegression: 'A security context became weaker',
  unshippedExecutable: 'A file ran that no image shipped',
}

export const driftText = (type: string): string => DRIFTS[type] ?? type

/** For files, `no_inventory` means that no agent has ever watched; elsewhere it is about images. */
export const notEvaluatedText = (type: string, reason: string): string =>
  type === 'unshippedExecutable' && reason === 'no_inventory' ? 'no agent has ever watched it' : reasonText(reason)
