/** Limits of the stored values of compute. */

/** A petabyte, or eleven days in nanoseconds: the sum of nine thousand such values fits 64 bits. */
export const MAX_COUNT = 1_000_000_000_000_000
export const MAX_UID_BYTES = 512
export const MAX_POD_UID_BYTES = 128
/** The longest name in Kubernetes. */
export const MAX_NAME_BYTES = 253
export const MAX_KIND_BYTES = 64
/** Namespace, pod and container with two slashes fit. */
export const MAX_REF_BYTES = 1_024
