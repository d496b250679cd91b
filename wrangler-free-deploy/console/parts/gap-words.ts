/** Words for coverage gaps of images, containers, nodes and workloads (docs/contract.md#coverage-report). */

const WORDS: Readonly<Record<string, string>> = {
  no_report: 'no report of vulnerabilities',
  old_report: 'the newest scan is old',
  guessed_report: 'only reports guessed by tag',
  cut_report: 'lists of a report were cut',
  no_sbom: 'no SBOM',
  guessed_sbom: 'only SBOMs guessed by tag',
  no_signature_result: 'not checked for signatures',
  unknown_signature: 'signatures could not be checked',
  no_runtime_data: 'not watched',
  probes_missing: 'a probe is missing',
  libraries_not_tracked: 'libraries are not tracked',
  events_dropped: 'events were lost',
  events_pending: 'events were not sent yet',
  incomplete_paths: 'paths were cut',
  capture_gap: 'not watched all the time',
  image_not_resolved: 'image not resolved',
  no_facts: 'platform not known',
  silent: 'silent',
  denials_not_watched: 'denials are not watched',
  no_observations: 'no syscall was recorded',
  capture_incomplete: 'syscalls recorded in part',
  denials_unknown: 'denials are not known',
}

export const gapText = (name: string): string => WORDS[name] ?? name.replaceAll('_', ' ')

const CAUSES: Readonly<Record<string, string>> = {
  last_heartbeat: 'watched before the window only',
  never_watched: 'never watched',
  exec_probe_missing: 'no probe for executed files',
  library_probe_missing: 'no probe for libraries',
  mode_exec: 'the agent watches executed files only',
  events_dropped: 'the agent lost events',
  events_unsent: 'the agent had events to send',
  inventory_incomplete: 'the agent says that its list is incomplete',
  path_cut: 'the path of a file was cut',
  unattributed_file: 'a file ran before its image or workload was known',
  silent: 'its agent fell silent',
  late_heartbeat: 'a heartbeat was late',
  probe_restart: 'the probe was started again',
  probe_change: 'the probes changed',
  late_start: 'it ran before it was watched',
  unwatched_pod: 'nobody watches a pod of it',
  watched_since: 'not watched for the whole window yet',
}

/** The row that caused the gap. */
export const causeText = (cause: string): string => CAUSES[cause] ?? cause.replaceAll('_', ' ')
