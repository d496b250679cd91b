import type { Config } from '../../config/index.ts'

const HOURS_PER_DAY = 24

/**
 * Days that checks of capabilities are kept after they were last reported: as long as the inventory, and at least the
 * window of the evidence and a day. 0 keeps them for ever.
 */
export function capabilityRetentionDays({
  runtimeInventoryRetentionDays: days,
  capabilityEvidenceWindowHours: hours,
}: Pick<Config, 'runtimeInventoryRetentionDays' | 'capabilityEvidenceWindowHours'>): number {
  return days === 0 ? 0 : Math.max(days, Math.ceil(hours / HOURS_PER_DAY) + 1)
}
