export { echoOf, normalizePod, PodPost, uidOf } from './post.ts'
export { PodEcho, PodRecord } from './record.ts'
