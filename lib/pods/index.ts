export { echoOf, normalizePod, PodPost, type PodRecord, uidOf } from './post.ts'
