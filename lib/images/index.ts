export { DIGEST_RULE, digest } from './digest.ts'
export { recordInventory } from './record.ts'
