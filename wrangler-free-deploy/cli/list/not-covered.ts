/** Why something that is not found may be there all the same. */
import { counted } from '../output/lines.ts'

export function gapTexts({ notCovered, notRead }: { notCovered: number; notRead: number }): string[] {
  return [
    ...(notCovered > 0
      ? [`${counted(notCovered, 'running image')} without report and SBOM: nobody knows what they contain`]
      : []),
    ...(notRead > 0 ? [`${counted(notRead, 'payload')} stored and not looked at yet`] : []),
  ]
}
