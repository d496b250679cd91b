import { HttpError } from '../errors.ts'

/** 2 MiB: the limit of every core route (interop-core 1.0), of the body as sent and as unpacked. */
export const MAX_CORE_BODY_BYTES = 2 * 1024 * 1024

export const tooLarge = (maxBytes: number) => new HttpError(413, `body is larger than ${maxBytes} bytes`)
