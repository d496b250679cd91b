export { chargeExport, exportAnswers, exportProfile } from './answer.ts'
export { ReadQuery, RecordQuery } from './query.ts'
