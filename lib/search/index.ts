export { Hit, type HitType, looked, TYPES } from './hits.ts'
export { isPurl, lowerAscii, type Purl, readPurl } from './purl.ts'
export { readQuestion } from './question.ts'
export { readHits } from './read.ts'
