/** Everything that a handler imports from here: the parts of a route, its validation, its errors and its answers. */

export { clientGone, HttpError, noData } from '../errors.ts'
export { access } from './access.ts'
export { charge, chargeRows, kib } from './charge.ts'
export { BAD_REQUEST, CodedError, coded, codedErrors } from './coded-errors.ts'
export * from './request/fields.ts'
export { listOf, recordOf } from './request/first-fault.ts'
export { body, lookup, NoParameters, params, query } from './request/validate.ts'
export { clientLeft } from './response/client-gone.ts'
export { asArray, between, cutList, pageByPage, piecesOf, sendPages } from './response/pages.ts'
export {
  cachedBytes,
  notModified,
  respond,
  respondEmpty,
  sendCached,
  sendJson,
  sendLive,
  sendPieces,
  sendShortJson,
  sendTagged,
} from './response/respond.ts'
export { type Context, type Env, header, route, type Validated } from './route.ts'
