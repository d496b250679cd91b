/** Parses a 409: the missing data, and the parameter that overrides the refusal. */

export interface Refusal {
  /** An introduction to all reasons; empty if there is none. */
  readonly about: string
  readonly reasons: readonly string[]
  readonly advice: readonly string[]
  /** The parameter that overrides the refusal; null if none does. */
  readonly acknowledge: Acknowledge | null
}

export const ACKNOWLEDGES = ['acknowledgePartial', 'acknowledgeClusterWide'] as const
export type Acknowledge = (typeof ACKNOWLEDGES)[number]

/** The part of the message about the parameter; the page has a check box instead. */
const ACKNOWLEDGE_HINT = /[,.]?\s*(?:or )?[^,.:]*acknowledge(?:Partial|ClusterWide)=true[^,.]*/g

/** `body` is the whole answer: JSON with a reason for each artifact, or plain text. */
export function refusalOf(body: string): Refusal {
  const acknowledge = ACKNOWLEDGES.find((one) => body.includes(`${one}=true`)) ?? null
  const coded = codedOf(body)
  if (coded !== null) {
    const reasons = coded.refusals.map(({ artifact, reason }) => `${artifact}: ${reason}`)
    return { about: '', reasons, advice: withoutHint([coded.message]), acknowledge }
  }
  const lines = body.trim().split('\n')
  const [, about, listed] = lines.length === 1 ? (/^([^:]+): (.*)\. acknowledge\w+=true/.exec(body) ?? []) : []
  if (about !== undefined && listed !== undefined)
    return { about, reasons: listed.split('; '), advice: [], acknowledge }
  const refused = lines.filter((line) => line.startsWith('refused: '))
  const others = lines.filter((line) => !line.startsWith('refused: '))
  if (refused.length === 0) return { about: '', reasons: withoutHint(others), advice: [], acknowledge }
  const reasons = refused.map((line) => line.slice('refused: '.length))
  return { about: '', reasons, advice: withoutHint(others), acknowledge }
}

const withoutHint = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replaceAll(ACKNOWLEDGE_HINT, '').trim()).filter((line) => line !== '')

interface Coded {
  readonly message: string
  readonly refusals: readonly { readonly artifact: string; readonly reason: string }[]
}

function codedOf(body: string): Coded | null {
  try {
    const parsed: unknown = JSON.parse(body)
    const isCoded = typeof parsed === 'object' && parsed !== null && 'refusals' in parsed
    return isCoded ? (parsed as Coded) : null
  } catch {
    return null
  }
}
