/** Words for reasons for which something is not known. A code that has none is shown as it is. */

/** A code that has no words. */
export const plainText = (code: string): string => code.replaceAll('_', ' ')

const REASONS: Readonly<Record<string, string>> = {
  // Coverage of what runs
  no_runtime_data: 'nobody watched it in the window',
  probes_missing: 'an agent runs without the probe for executed files',
  libraries_not_tracked: 'an agent does not track loaded libraries',
  events_dropped: 'an agent lost events in the window',
  events_pending: 'an agent had entries that were not sent at its last heartbeat',
  incomplete_paths:
    'a path is cut short, an agent says that its list is not complete, or a file ran before its image was known',
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
  no_common_source: 'no scanner has scanned all of these images on one platform, and two scanners cannot be compared',
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

export const reasonText = (reason: string): string => REASONS[reason] ?? plainText(reason)
