import { HttpError } from '../http/errors.ts'

/** Running containers that policies are generated of. */
export const MAX_CONTAINERS = 5_000
/** Bytes of the longest answer, and of the signers that are kept for it: the CLI reads no more (interop-supply-chain 4). */
export const MAX_POLICY_BYTES = 10 * 1024 * 1024
/** A batch of results as it was read, as texts and as parsed, and the containers of most clusters. */
export const FIRST_BYTES = 12 * 1024 * 1024
/** Copies of the policies: in parts, as one, and compressed. */
export const TEXT_COPIES = 3
/** Tells of how many bytes are held; what it returns is waited for before there are more. */
export type Hold = (bytes: number) => Promise<void> | void

const ASK_FOR_LESS = 'ask for one namespace at a time with `namespace`'

export const tooManyContainers = () => new HttpError(422, `more than ${MAX_CONTAINERS} containers run: ${ASK_FOR_LESS}`)

export const tooManyElsewhere = () =>
  new HttpError(
    422,
    `more than ${MAX_CONTAINERS} containers of the cluster run images of the names that this namespace has, and policies of policy-controller bind them all`,
  )

export const tooLarge = () =>
  new HttpError(422, `the policies would be longer than ${MAX_POLICY_BYTES} bytes: ${ASK_FOR_LESS}`)
