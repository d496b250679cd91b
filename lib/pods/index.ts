export { POD_PAGE_ROWS, type PodCursor, readFirstPods, readNextPods } from './pages.ts'
export { echoOf, normalizePod, PodPost, uidOf } from './post.ts'
export { PodEcho, PodRecord } from './record.ts'
