export {
  metricPrefix,
  POLICY_FORMAT_NAMES,
  type PolicyFormat,
  policyFormatNamed,
  sourceNamed,
  storedFormat,
  toWireFormats,
  toWirePolicyFormat,
  toWireSource,
  type WireNames,
  wireSourcesJson,
} from '../wire-names/index.ts'
export { PostedSbom } from './components.ts'
export { cursorText } from './cursor.ts'
export { countUnreadable, instant, optional, optionalFlag, optionalInstant } from './fields.ts'
export { PostedFindings } from './findings.ts'
export { MAX_SKEW_SECONDS, secondsAhead } from './header.ts'
export { Payloads } from './payloads.ts'
export { PayloadReader } from './reader.ts'
export { normalRepository } from './repository.ts'
export { DuplicatePage, PayloadOutcome, payload, payloadAnswers, StagedPage, storePayload } from './route.ts'
export { startThread } from './thread.ts'
