export { judgePodSecurity } from './judge.ts'
export { podSecuritySnapshot, rejudge } from './snapshot.ts'
