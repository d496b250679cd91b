import { depth } from './depth.ts'

/** Cases that a property of the policies is tried with. */
export const RUNS = depth(100, 1_000)
