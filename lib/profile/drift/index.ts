export { type DriftFacts, readDriftFacts } from './facts.ts'
export { judgeDrift } from './judge.ts'
export { type Rejudge, type Weakened, weakened } from './regression.ts'
