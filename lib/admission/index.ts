export { generate, requireFullCoverage, requireNoOtherNamespaces } from './generate.ts'
export { INITIAL_BYTES, MAX_CONTAINERS, MAX_POLICY_BYTES } from './limits.ts'
export { planOf } from './plan.ts'
export { readCoverage } from './read.ts'
