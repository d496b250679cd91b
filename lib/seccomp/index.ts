export { Capture, type CaptureRow, captureOf, LEVELS, type Level } from './capture.ts'
export { CrPath, MirroredCr, mirrorOf, PostedCr } from './cr.ts'
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
export { fileSetOf, PostedNodeFiles, readNodeFiles } from './node-files.ts'
export { type Observed, readObserved } from './observed.ts'
