/** The differences of two images. */
import { shortDigest } from '../output/words.ts'
import { type Gap, gapTexts } from './gaps.ts'
import {
  type ComponentChanges,
  componentRows,
  cutTexts,
  type FindingChanges,
  fileText,
  findingRows,
  type List,
  type Row,
  type RunFile,
  rowOf,
  type SignatureOfImage,
  signatureText,
} from './rows.ts'
import { viewOf } from './view.ts'

export interface ImageDiff {
  readonly components: ComponentChanges | null
  readonly findings: FindingChanges | null
  readonly signatures: { readonly from: SignatureOfImage; readonly to: SignatureOfImage }
  readonly files: { readonly onlyFrom: List<RunFile>; readonly onlyTo: List<RunFile> } | null
  readonly notKnown: readonly Gap[]
}

export const IMAGES_VIEW = viewOf<ImageDiff>({
  rowsOf: ({ components, findings, signatures, files }) => [
    ...(components === null ? [] : componentRows(components)),
    ...(findings === null ? [] : findingRows(findings)),
    ...signatureRows(signatures),
    ...(files?.onlyFrom.items ?? []).map((file) => rowOf('files', 'only before', fileText(file))),
    ...(files?.onlyTo.items ?? []).map((file) => rowOf('files', 'only after', fileText(file))),
  ],
  notesOf: ({ components, findings, files }) =>
    cutTexts({
      'components added': components?.added,
      'components removed': components?.removed,
      'components changed': components?.changed,
      'findings that came': findings?.came,
      'findings that went': findings?.went,
      'findings that changed': findings?.changed,
      'files that only ran before': files?.onlyFrom,
      'files that only ran after': files?.onlyTo,
    }),
  gapsOf: ({ notKnown, signatures: { from, to } }) => [
    ...gapTexts(notKnown),
    ...[from, to]
      .filter(({ verdict }) => verdict === null || verdict === 'unknown')
      .map(({ digest, verdict }) => `not known: signatures: ${verdict ?? 'not_checked'}, ${shortDigest(digest)}`),
  ],
})

/** A signature that was not checked, or not to an end, is unknown: it is no difference. */
function signatureRows({ from, to }: ImageDiff['signatures']): Row[] {
  const isKnown = [from, to].every(({ verdict }) => verdict !== null && verdict !== 'unknown')
  const [before, after] = [signatureText(from), signatureText(to)]
  return isKnown && before !== after ? [rowOf('signatures', 'changed', 'verdict', before, after)] : []
}
