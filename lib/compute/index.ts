export { COMPUTE_BODY, checkContainers, envelope, intervalMs, MAX_COMPUTE_BYTES, MAX_CONTAINERS, positive } from './envelope.ts'
