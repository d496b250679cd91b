/** Reads a 409: what is not complete, and which parameter takes it as it is. */

export interface Refusal {
  /** What is said once about all reasons; blank where the reasons say it all. */
  readonly about: string
  readonly reasons: readonly string[]
  readonly advice: readonly string[]
  /** The parameter that gets the text all the same; null where nothing does. */
  readonly acknowledge: Acknowledge | null
}

export const ACKNOWLEDGES = ['acknowledgePartial', 'acknowledgeClusterWide'] as const
export type Acknowledge = (typeof ACKNOWLEDGES)[number]

/** The check box says it in words. */
const SPOKEN = /[,.]?\s*(?:or )?[^,.:]*acknowledge(?:Partial|ClusterWide)=true[^,.]*/g

/** `body` is the whole answer: JSON with a reason for each artifact, or text. */
export function refusalOf(body: string): Refusal {
  const acknowledge = ACKNOWLEDGES.find((one) => body.includes(`${one}=true`)) ?? null
  const coded = codedOf(body)
  if (coded !== null) {
    const reasons = coded.refusals.map(({ artifact, reason }) => `${artifact}: ${reason}`)
    return { about: '', reasons, advice: spoken([coded.message]), acknowledge }
  }
  const lines = body.trim().split('\n')
  const [, about, listed] = lines.length === 1 ? (/^([^:]+): (.*)\. acknowledge\w+=true/.exec(body) ?? []) : []
  if (about !== undefined && listed !== undefined)
    return { about, reasons: listed.split('; '), advice: [], acknowledge }
  const refused = lines.filter((line) => line.startsWith('refused: '))
  const others = lines.filter((line) => !line.startsWith('refused: '))
  if (refused.length === 0) return { about: '', reasons: spoken(others), advice: [], acknowledge }
  const reasons = refused.map((line) => line.slice('refused: '.length))
  return { about: '', reasons, advice: spoken(others), acknowledge }
}

const spoken = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replaceAll(SPOKEN, '').trim()).filter((line) => line !== '')

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
