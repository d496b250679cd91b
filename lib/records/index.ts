export { joinedColumns, plainColumns } from './columns.ts'
export { batchedLookup, joinedPage, listReader, type PageCursor, plainReader } from './read.ts'
export { fromRow, plainRow, plainRows, type RawRow } from './render.ts'
