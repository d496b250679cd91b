export { POD_PAGE_ROWS, type PodCursor, readFirstPods, readNextPods } from './pages.ts'
export { echoOf, normalizePod, PodPost } from './post.ts'
export { hasOwner, labelsHash, namedPorts, uidOf } from './posted-object.ts'
export { PodEcho, PodRecord } from './record.ts'
