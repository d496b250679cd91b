export { findingsOf, findingsOfVictim, WITHOUT_HISTORY } from './answer.ts'
export { type Finding, Findings, MAX_BYTES } from './contract.ts'
export type { Container, Minute, Neighbor, Victim, Wait } from './rows.ts'
export { type Thresholds, thresholdsOf } from './thresholds.ts'
