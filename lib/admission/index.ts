export { generate, requireAlone, requireWhole } from './generate.ts'
export { FIRST_BYTES, MAX_CONTAINERS, MAX_POLICY_BYTES } from './limits.ts'
export { planOf } from './plan.ts'
export { readCoverage } from './read.ts'
