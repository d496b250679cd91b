export { Attestation, Signature, type SignatureVerdict, VERDICTS, verdict } from './entry.ts'
export { UnknownReasons } from './reasons.ts'
export { redactDetails } from './redact.ts'
export { postedResult, resultAnswers, storeResult } from './route.ts'
