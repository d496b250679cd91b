export { asPosted, normalizePod, PodPost, type PodRecord, uidOf } from './post.ts'
