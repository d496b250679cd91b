export { COMPUTE_BODY, checkContainers, envelope, intervalMs, MAX_COMPUTE_BYTES, MAX_CONTAINERS, positive } from './envelope.ts'
export { LatestContainer, LatestNode, MAX_LATEST, readLatest, readNodes } from './gauges.ts'
export { Samples, takeSamples } from './samples.ts'
