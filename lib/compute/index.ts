export {
  MAX_MINUTES_BY_TIME,
  MAX_MINUTES_WITHOUT_NODE,
  MAX_PAIRS,
  MAX_PAIRS_OF_VICTIM,
  Pair,
  readContention,
} from './contention.ts'
export { COMPUTE_BODY } from './envelope.ts'
export { LatestContainer, LatestNode, MAX_LATEST, readLatest, readNodes } from './gauges.ts'
export { countContainers, HistoryRow, MAX_HISTORY, MAX_MINUTES, readHistory } from './history.ts'
export { Minutes, takeMinutes } from './minutes.ts'
export { Samples, takeSamples } from './samples.ts'
