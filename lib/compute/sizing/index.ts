export { readSizing, withoutHistory } from './read.ts'
export { WorkloadSizing } from './record.ts'
