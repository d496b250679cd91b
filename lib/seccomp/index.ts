export { Capture, type CaptureRow, captureOf, LEVELS, type Level } from './capture.ts'
export { CrPath, MirroredCr, mirrorOf, PostedCr } from './cr.ts'
export { MAX_DETAIL_BYTES } from './detail.ts'
export { ProfileSummary } from './entry.ts'
export { type Exported, exportAnswers, exportProfile } from './export.ts'
export { ExportBody, ExportQuery, MAX_EXPORT_BODY_BYTES } from './export-options.ts'
export {
  ALLOW_ACTION,
  type Allowed,
  allowedOf,
  foldedArchitecture,
  isDnsName,
  isSyscallName,
  LOG_ACTION,
  localhostProfile,
  profileArchitectures,
  suggestedName,
  type Workload,
  WorkloadPath,
} from './names.ts'
export { fileSetOf, PostedNodeFiles, readNodeFiles } from './node-files.ts'
export { type Observed, readObserved } from './observed.ts'
export { noProfile, ObservedProfile, Profile, profileOf } from './profile.ts'
export { openProfiles, type Profiles } from './profiles.ts'
