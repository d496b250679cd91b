export { MAX_ROWS, MORE_ROWS, ROW_BYTES, readCapabilities } from './read.ts'
export { WorkloadCapabilities } from './record.ts'
export { capabilityRetentionDays } from './retention.ts'
export { Capabilities, takeCapabilities } from './take.ts'
