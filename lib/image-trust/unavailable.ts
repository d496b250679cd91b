/** An answer of the evaluator that breaks its format. The message is for the log. */
export class BadAnswer extends Error {}

/**
 * Nothing is known of image trust (docs/contract.md#image-trust). The message is one of the phrases below, for the
 * client; `cause` is for the log only, since it may have names and addresses of the cluster.
 */
export class Unavailable extends Error {}

/** The fixed phrases. Clients show them unchanged. */
export const REASON = {
  notConfigured: 'no evaluator is configured',
  off: 'image trust evaluation is off in the evaluator',
  tokenRefused: 'the evaluator refused the read token of the broker',
  notConnected: 'the evaluator could not be reached',
  requestFailed: 'the request to the evaluator failed',
  noAnswer: (ms: number) => `the evaluator did not answer within ${ms} ms`,
  status: (status: number) => `the evaluator answered with status ${status}`,
  late: (ms: number) => `the answer of the evaluator was not complete within ${ms} ms`,
  unreadable: 'the answer of the evaluator could not be read',
  invalid: 'the answer of the evaluator is not valid',
  tooLarge: (bytes: number) => `the answer of the evaluator is larger than ${bytes} bytes: filter by namespace`,
} as const
