export { PostedSbom } from './components.ts'
export {
  countUnreadable,
  instant,
  optional,
  optionalFlag,
  optionalInstant,
  SCHEMA_VERSION,
  schemaVersion,
} from './fields.ts'
export { PostedFindings } from './findings.ts'
export { isAhead, MAX_SKEW_SECONDS } from './header.ts'
export { parsed } from './json-parts.ts'
export { DuplicatePage, PayloadOutcome, Payloads, StagedPage } from './payloads.ts'
export { PayloadReader } from './reader.ts'
export { normalRepository } from './repository.ts'
export { payload, payloadAnswers, storePayload } from './route.ts'
export { startThread } from './thread.ts'
