export { DecisionPage, readDecisions } from './list.ts'
export { PutDecision, PutOutcome, putDecision } from './put.ts'
