export { type Dropped, EntrySchema, jsonSchemaOf } from './entry-schema.ts'
export * from './fields.ts'
