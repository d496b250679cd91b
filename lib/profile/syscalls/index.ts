export { judgeSyscalls, syscallsSnapshot } from './judge.ts'
