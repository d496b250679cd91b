/** Colours of how urgent a finding is. */
import type { Colour } from './cell.ts'

const SEVERITIES: Readonly<Record<string, Colour>> = { CRITICAL: 'red', HIGH: 'yellow' }
const TIERS: Readonly<Record<string, Colour>> = { P0: 'red', P1: 'yellow' }

export const severityColour = (severity: string): Colour | null => SEVERITIES[severity] ?? null
export const tierColour = (tier: string | null): Colour | null => TIERS[tier ?? ''] ?? null
export const kevColour = (kev: boolean | null): Colour | null => (kev === true ? 'red' : null)
