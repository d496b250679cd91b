/** Running images that nobody scanned: no list of vulnerabilities has them. */
import { ask } from '../connection/ask.ts'
import type { CliContext } from '../context.ts'
import type { ListFlags } from '../list/listing.ts'
import { counted } from '../output/lines.ts'
import { answerOf } from '../output/show.ts'

interface Coverage {
  readonly images: { readonly totals: { readonly missing: { readonly no_report: number } } | null }
}

/** Lines about them for stderr; none if every image has a report. */
export async function unscannedTexts(context: CliContext, flags: ListFlags): Promise<string[]> {
  const bytes = await ask(context, flags, {
    ...({ method: 'GET', path: ['coverage'], expects: 'application/json' } as const),
    query: { part: 'images', limit: '1', namespace: flags.namespace },
  })
  const { totals } = answerOf<Coverage>(bytes).images
  if (totals === null) return ['how many running images have no report is not known']
  const { no_report: count } = totals.missing
  return count > 0 ? [`${counted(count, 'running image')} without a report: nobody knows what they have`] : []
}
