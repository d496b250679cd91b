export { type Dropped, EntrySchema, jsonSchemaOf } from './entry-schema.ts'
export { entryList, nodeName } from './envelope.ts'
export * from './fields.ts'
