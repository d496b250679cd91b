/** An export as one stream of YAML, which can be applied as it is (docs/contract.md#workload-profiles). */
import { commentedOut } from '../../text/commented-out.ts'
import { comment } from '../../text/yaml.ts'
import { type Available, type ExportDocument, isAvailable, type Source, withOffset } from './document.ts'
import { generatorOf, openingOf, productOf, quotedWorkload } from './provenance.ts'

/** The objects as documents; everything else as comments. */
export function yamlStream(source: Source, documents: readonly ExportDocument[], isRecorded: boolean): string {
  const available = documents.filter(isAvailable)
  return [
    headOf(source, isRecorded),
    ...documents.flatMap((one) =>
      isAvailable(one) ? [] : [comment(`not included: ${one.artifact}${ofImage(one)} (${one.reason})`)],
    ),
    ...available.filter(({ apiVersion }) => apiVersion !== null).map(({ content }) => `---\n${content}`),
    ...available.filter(({ apiVersion }) => apiVersion === null).map((one) => appended(source, one)),
  ].join('')
}

function headOf(source: Source, isRecorded: boolean): string {
  const { key, mode, profile } = source
  const revision = profile.version === null ? 'unversioned' : `revision ${profile.version.revision}`
  return [
    `${productOf(source)} export of ${quotedWorkload(key)}`,
    `mode: ${mode}; profile ${revision} (${profile.contentHash}); generated ${withOffset(profile.generatedAt)} by ` +
      generatorOf(source),
    `${productOf(source)} never applies anything: review each document, keep it under version control, apply it ` +
      'yourself.',
    isRecorded
      ? 'recorded: later profiles of this workload are compared with it'
      : 'not recorded: only a POST records an export',
  ]
    .map(comment)
    .join('')
}

const ofImage = ({ image }: ExportDocument): string => (image === null ? '' : ` of ${image.digest}`)

function appended(source: Source, { artifact, title, content }: Available): string {
  const opening = artifact === 'securitycontext' ? '' : openingOf(source, artifact, source.mode)
  return `${comment(`---- ${artifact} (${title}; not part of the apply stream) ----`)}${opening}${commentedOut(
    content.replace(/\n$/, ''),
  )}`
}
