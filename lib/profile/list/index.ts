export { ListQuery } from './query.ts'
export { readList } from './read.ts'
export { ListedProfile, ListedProfilePage } from './record.ts'
