/** Cases that a property of the policies is tried with: `ADMISSION_RUNS=100000` for as many. */
export const RUNS = Number(process.env.ADMISSION_RUNS ?? 1_000)
