export { readImage } from './image.ts'
export {
  after,
  container,
  ENTRY_BYTES,
  kind,
  limit,
  MORE_ENTRIES,
  origins,
  windowHours,
  workloadPart,
  workloadSegment,
} from './query.ts'
export { ImageRuntime, imageDigest, WorkloadRuntime } from './record.ts'
export { readUnshipped, UnshippedCursor, UnshippedFiles } from './unshipped.ts'
export { PIECE_BYTES, readWorkload } from './workload.ts'
