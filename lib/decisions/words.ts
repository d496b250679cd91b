/** The words of decisions (docs/contract.md#decisions). */
import { z } from 'zod'

/** The first four settle a finding; the others say that work is left. */
export const SETTLED = ['accepted', 'not_affected', 'will_not_fix', 'fixed'] as const
export const DECISIONS = [...SETTLED, 'affected', 'under_investigation'] as const
export type DecisionWord = (typeof DECISIONS)[number]

/** The reasons of OpenVEX why a product is not affected. */
export const JUSTIFICATIONS = [
  'component_not_present',
  'vulnerable_code_not_present',
  'vulnerable_code_not_in_execute_path',
  'vulnerable_code_cannot_be_controlled_by_adversary',
  'inline_mitigations_already_exist',
] as const
export type Justification = (typeof JUSTIFICATIONS)[number]

export const decisionWord = z.enum(DECISIONS).meta({ id: 'DecisionWord' })
export const justification = z.enum(JUSTIFICATIONS).meta({ id: 'VexJustification' })

/** Longest texts of a decision, in characters. */
export const MAX_BY_CHARS = 256
export const MAX_WHY_CHARS = 1_024
export const MAX_PACKAGE_CHARS = 1_024
export const MAX_REPOSITORY_CHARS = 512

/** Decisions that hold at once; further ones are refused with 409. */
export const MAX_HOLDING = 20_000
/** Vulnerabilities of one document whose decided workloads are counted at once; of more, by the next pass of the job. */
export const MAX_COUNTED = 200
/** Ended decisions that are kept under one id of a vulnerability, and in all. */
export const MAX_HISTORY = 500
export const MAX_ENDED = 100_000
/** Ended decisions are kept for this long. */
export const HISTORY_DAYS = 365
/** Documents of which the version is known; further ones are refused with 409. */
export const MAX_DOCUMENTS = 10_000

/** Ranks of scopes, the most specific first. */
export const RANK = { workload: 0, image: 1, namespace: 2, all: 3 } as const
