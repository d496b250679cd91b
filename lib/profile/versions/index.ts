export { change, diffOf, podSecurityDiff } from './diff.ts'
export { canonicalJson, type DimensionHashes, type HashedSnapshot, hashOfPart, hashSnapshot } from './hash.ts'
export { readPair, type StoredContent } from './pair.ts'
export {
  changed,
  ProfileDiff,
  podSecurityChanges,
  SeccompResource,
  type Version,
  VersionPage,
  type VersionPosture,
  WholeVersion,
} from './record.ts'
export { revisionNotFound, revisionOrNull, revisionSegment, VERSION_REFUSALS } from './revision.ts'
export { type StoredVersion, storeFailure, storeProfile, storeVersion } from './store.ts'
export {
  FindingCounts,
  NO_SUMMARY,
  type ProfileSummary,
  SummaryDimensions,
  SummaryDrift,
  SummaryPosture,
  summaryOf,
} from './summary.ts'
