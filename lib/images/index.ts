export { MALFORMED_REFERENCE } from './container.ts'
export { afterDigest, DIGEST_PATTERN, DIGEST_RULE, digest, digestText, isDigest } from './digest.ts'
export { runningContainers, runningDigests } from './inventory.ts'
export { recordInventory } from './record.ts'
export {
  ContainerDigest,
  ImagePage,
  ImageRecord,
  ImageSelf,
  ImageSummary,
  ImageWorkload,
  WorkloadContainers,
} from './records.ts'
