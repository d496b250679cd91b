export { exportAnswers, exportCharge, exportProfile } from './answer.ts'
export { ReadQuery, RecordQuery } from './query.ts'
