/** An answer that breaks what the evaluator and the broker agreed on; the message is for the log. */
export class BadAnswer extends Error {}

/**
 * Why nothing is known of image trust (interop-supply-chain 3.8). The message is for the client, and one of the phrases below; what lies behind
 * it, `cause`, is for the log: it may tell names and addresses of the cluster.
 */
export class Unavailable extends Error {}

/** The fixed phrases. Clients show them as they are. */
export const WHY = {
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
