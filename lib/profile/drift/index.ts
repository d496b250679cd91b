export { type DriftFacts, readDriftFacts } from './facts.ts'
export { judgeDrift } from './judge.ts'
export type { Rejudge } from './regression.ts'
