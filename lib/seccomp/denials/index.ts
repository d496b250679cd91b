export { Drain, MAX_DRAIN_ENTRIES } from './drain.ts'
export { DenialInlet } from './inlet.ts'
export { DenialRow, readDenials } from './record.ts'
export { countWorkloads, watchAttributed, watchDenialWorkloads } from './workloads.ts'
