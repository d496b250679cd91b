export { judgeNetwork, listed } from './judge.ts'
export { MAX_EDGES, PODS, readAudit, readEdges, readExamples } from './read.ts'
export { networkSnapshot } from './snapshot.ts'
