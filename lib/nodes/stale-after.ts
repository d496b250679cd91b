import type { Config } from '../config/index.ts'

const DAY_SECS = 86_400

/** Seconds after which a node that posted no pod is stale. With the stale sweep off, a day. */
export const staleAfterSecs = ({ peerStaleAliveSecs }: Pick<Config, 'peerStaleAliveSecs'>): number =>
  peerStaleAliveSecs === 0 ? DAY_SECS : peerStaleAliveSecs
