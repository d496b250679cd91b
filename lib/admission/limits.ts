import { HttpError } from '../http/errors.ts'

/** Running containers that policies are generated of. */
export const MAX_CONTAINERS = 5_000
/** Bytes of the longest answer, and of the signers that are kept for it: the CLI reads no more (interop-supply-chain 4). */
export const MAX_POLICY_BYTES = 10 * 1024 * 1024
/** Bytes that a container may cost (interop-supply-chain 3.10): its result at its longest, twice. */
export const CONTAINER_BYTES = 512 * 1024

const ASK_FOR_LESS = 'ask for one namespace at a time with `namespace`'

export const tooManyContainers = () => new HttpError(422, `more than ${MAX_CONTAINERS} containers run: ${ASK_FOR_LESS}`)

export const tooManyElsewhere = () =>
  new HttpError(
    422,
    `more than ${MAX_CONTAINERS} containers of the cluster run images of the names that this namespace has, and policies of policy-controller bind them all`,
  )

export const tooLarge = () => new HttpError(422, `the policies would be longer than ${MAX_POLICY_BYTES} bytes: ${ASK_FOR_LESS}`)
