/** Words for codes of the broker. A code without words is shown as it is. */
import type { JsonAnswer } from '../../api/answers.ts'
import type { Tone } from '../../parts/tone.ts'

export type Profile = JsonAnswer<'/workloads/{namespace}/{kind}/{name}/profile'>
export type Status = Profile['posture']['status']
export type ReasonDetail = NonNullable<Profile['capabilities']['containers'][number]['reasonDetail']>
type Signature = NonNullable<Profile['dimensions']['images']['supplyChain']>['verdict']

export const STATUS_TONES: Readonly<Record<Status, Tone>> = { ok: 'good', warn: 'warn', risk: 'bad', unknown: 'plain' }

export const SIGNATURE_TONES: Readonly<Record<Signature, Tone>> = {
  verified: 'good',
  key_signed: 'warn',
  unsigned: 'bad',
  invalid: 'bad',
  unknown: 'plain',
  not_configured: 'plain',
}

const SIGNATURE_TEXTS: Readonly<Record<Signature, string>> = {
  verified: 'verified',
  key_signed: 'unknown key',
  unsigned: 'unsigned',
  invalid: 'invalid',
  unknown: 'unknown',
  not_configured: 'not looked for',
}

/** Null is an image that was never checked, which does not mean unsigned. */
export const signatureText = (verdict: Signature | null): string =>
  verdict === null ? 'not checked' : SIGNATURE_TEXTS[verdict]

const plain = (code: string): string => code.replaceAll('_', ' ')

const REASONS: Readonly<Record<string, string>> = {
  // Coverage of what runs
  no_runtime_data: 'nobody watched it in the window',
  probes_missing: 'an agent runs without the probe for executed files',
  libraries_not_tracked: 'an agent does not track loaded libraries',
  events_dropped: 'an agent lost events in the window',
  events_pending: 'an agent had entries that were not sent at its last heartbeat',
  incomplete_paths: 'a path is cut short, or an agent says that its list is not complete',
  capture_gap: 'it was not watched for the whole window without a gap',
  // Capabilities
  no_current_digest: 'no image of this container runs',
  rows_truncated: 'there are more rows than the broker reads',
  capabilities_not_tracked: 'an agent runs without the probe for capabilities',
  capabilities_partial_hook: 'the probe of an agent does not see all checks of capabilities',
  capabilities_not_seen_since_start:
    'it was not watched from its start, when most capabilities are used; this stays until the container is replaced',
  // Use of packages
  language_package: 'files cannot tell for this kind of package',
  no_package_files: 'no scanner lists files of this package',
  sbom_incomplete: 'the list of its files may be cut',
  // Denials
  no_node_watching: 'no node is watching for denials now',
  unattributed_in_cluster: 'too many denials of the cluster belong to no known pod',
  unattributed_denials: 'the namespace has denials that belong to no known pod',
  // Drift
  no_running_containers: 'no container of it runs',
  no_image_inventory: 'no agent reports the images of its containers',
  no_export: 'no export was recorded to compare with',
  no_baseline: 'there is no earlier state to compare with',
  no_container_data: 'nothing is known of its containers',
  truncated: 'it has more containers and images than the broker reads',
  // Differences
  no_inventory: 'the inventory of images has no container of it',
  not_recorded_then: 'there is no record of it as old as the first date',
  before_retention: 'the first date is older than what is kept; records of that time may be deleted',
  too_many: 'too much differs to be listed',
  no_sbom: 'an image has no SBOM',
  no_report: 'no vulnerability report answers for an image',
  no_common_source: 'no scanner has scanned all of these images, and two scanners cannot be compared',
  not_checked: 'an image was not checked',
  watched_too_short: 'an image was watched for too short a time',
  no_syscalls: 'no syscall was observed',
  reset_since: 'the observed set was reset after the first date',
  capture_incomplete: 'not all syscalls are recorded',
  image_not_recorded: 'it is not recorded which image made some of the syscalls',
  not_counted: 'the flows of an older release are being counted',
  no_versions: 'no version of the profile is stored',
  // Sizing
  history_disabled: 'the broker keeps no history of CPU and memory',
  unknown_workload: 'no pod of this workload is known',
  no_samples: 'no pod of it has a minute in the window',
  too_few_minutes: 'percentiles need 60 observed minutes',
}

/** The text with a capital first letter. */
export const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`

export const reasonText = (reason: string): string => REASONS[reason] ?? plain(reason)

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
export const causeText = ({ cause }: Pick<ReasonDetail, 'cause'>): string => CAUSES[cause] ?? plain(cause)

/** The place of a cause: `pod web-1, node node-1`. */
export const placeText = ({ podName, nodeName }: Pick<ReasonDetail, 'podName' | 'nodeName'>): string =>
  [podName && `pod ${podName}`, nodeName && `node ${nodeName}`].filter(Boolean).join(', ')

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`
}

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

const ORIGINS: Readonly<Record<string, string>> = {
  image: 'of the image',
  otherFs: 'mounted',
  deleted: 'deleted while it ran',
  writableLayer: 'written after the start',
  memfd: 'only in memory',
  unknown: 'not known',
}

export const originText = (origin: string): string => ORIGINS[origin] ?? origin

export const isUnshipped = (origin: string): boolean => ['deleted', 'writableLayer', 'memfd'].includes(origin)
