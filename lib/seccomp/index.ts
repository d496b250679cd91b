export { Capture, type CaptureRow, captureOf, LEVELS, type Level } from './capture.ts'
export { ProfileSummary } from './entry.ts'
export {
  ALLOW_ACTION,
  foldedArchitecture,
  isDnsName,
  LOG_ACTION,
  localhostProfile,
  shownArchitectures,
  suggestedName,
  type Workload,
  WorkloadPath,
} from './names.ts'
export { type Observed, readObserved } from './observed.ts'
export { noProfile, ObservedProfile, Profile, profileOf } from './profile.ts'
export { openProfiles, type Profiles } from './profiles.ts'
