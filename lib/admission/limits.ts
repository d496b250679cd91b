import { HttpError } from '../errors.ts'

/** Running containers that one answer may cover. */
export const MAX_CONTAINERS = 5_000
/** Bytes of the longest answer, and of the signers collected for it. Clients read at most 10 MiB. */
export const MAX_POLICY_BYTES = 10 * 1024 * 1024
/** Memory for a batch of results, as read, as text and parsed, and for the containers of most clusters. */
export const INITIAL_BYTES = 12 * 1024 * 1024
/** Copies of the policies in memory: in parts, joined, and compressed. */
export const TEXT_COPIES = 3
/** Called with the bytes held so far; awaited before more are taken. */
export type ReserveMemory = (bytes: number) => Promise<void> | void

const ASK_FOR_LESS = 'ask for one namespace at a time with `namespace`'

export const tooManyContainers = () => new HttpError(422, `more than ${MAX_CONTAINERS} containers run: ${ASK_FOR_LESS}`)

export const tooManyElsewhere = () =>
  new HttpError(
    422,
    `more than ${MAX_CONTAINERS} containers of the cluster run images of the names that this namespace has, and ` +
      'policies of policy-controller bind them all',
  )

export const tooLarge = () =>
  new HttpError(422, `the policies would be longer than ${MAX_POLICY_BYTES} bytes: ${ASK_FOR_LESS}`)
