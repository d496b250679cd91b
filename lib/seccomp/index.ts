export { Capture, type CaptureRow, captureOf, LEVELS, type Level } from './capture.ts'
export { exportAnswers, sendManifest } from './export.ts'
export { ExportBody, ExportQuery, MAX_EXPORT_BODY_BYTES } from './export-options.ts'
export { type Allowed, allowedOf } from './manifest.ts'
export {
  ALLOW_ACTION,
  foldedArchitecture,
  isDnsName,
  isSyscallName,
  LOG_ACTION,
  localhostProfile,
  shownArchitectures,
  suggestedName,
  type Workload,
  WorkloadPath,
} from './names.ts'
export { type Observed, readObserved } from './observed.ts'
