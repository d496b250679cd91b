export { POD_PAGE_ROWS, type PodPlace, readFirstPods, readNextPods } from './pages.ts'
export { echoOf, normalizePod, PodPost, uidOf } from './post.ts'
export { PodEcho, PodRecord } from './record.ts'
