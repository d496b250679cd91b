export { isAudit, judgeSyscalls, syscallsSnapshot } from './judge.ts'
