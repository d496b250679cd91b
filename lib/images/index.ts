export { DIGEST_PATTERN, DIGEST_RULE, digest } from './digest.ts'
export { recordInventory } from './record.ts'
export { ImagePage, ImageRecord, ImageSummary, WorkloadContainers } from './records.ts'
