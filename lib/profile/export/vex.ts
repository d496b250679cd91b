/**
 * The draft of an OpenVEX document: vulnerabilities whose packages no container of the workload was seen to use
 * (docs/contract.md#workload-profiles). The same facts give the same document.
 * https://github.com/openvex/spec/blob/main/OPENVEX-SPEC.md
 */
import { createHash } from 'node:crypto'
import { repositoryOfReference } from '../../admission/index.ts'
import { Slice } from '../../event-loop/slices.ts'
import { withEscapes } from '../../text/commented-out.ts'
import { imageProduct, OPENVEX_CONTEXT } from '../../vex/index.ts'
import { type ExportDocument, fileNameOf, missing, type Source } from './document.ts'
import { generatorOf, productOf } from './provenance.ts'
import { readUnused, type Unused, type UnusedFinding, type WatchedImage } from './vex-read.ts'

const NO_FINDINGS = 'no finding of any image of the workload is known'
const NO_STATEMENT =
  'no statement can be made: for every finding it is not known, or not so, that no container of the workload used ' +
  'the package'

export async function vexDocument(source: Source): Promise<ExportDocument> {
  const unused = await readUnused(source.db.read, source.key)
  if (!unused.hasFindings) return missing('vex', NO_FINDINGS)
  if (unused.images.length === 0 || unused.judgedAt === null) return missing('vex', NO_STATEMENT)
  return {
    ...{ artifact: 'vex', fileName: fileNameOf('vex'), image: null, apiVersion: null, kind: null },
    ...{ contentType: 'application/json', title: 'OpenVEX draft' },
    content: await textOf(source, { ...unused, judgedAt: unused.judgedAt }),
    applyWith: 'nothing to apply: a draft for people to review, and then to publish for scanners',
  }
}

type Judged = Unused & { readonly judgedAt: string }

const zoned = (naive: string) => `${naive}+00:00`

/** JSON with a line for each statement. */
async function textOf(source: Source, { images, judgedAt }: Judged): Promise<string> {
  const product = productOf(source)
  const minHours = source.config.inUseWindowHours
  const slice = new Slice()
  const statements: string[] = []
  const hash = createHash('sha256').update(JSON.stringify([source.key, generatorOf(source), judgedAt, minHours]))
  for (const image of images) {
    const notes = notesOf(image, judgedAt, minHours)
    for (const finding of image.findings) {
      const statement = JSON.stringify(statementOf(image, finding, notes))
      hash.update(statement)
      statements.push(withEscapes(statement))
      if (slice.isOver) await slice.next()
    }
  }
  const inputHash = hash.digest('hex')
  const start = images
    .map(({ since }) => since)
    .sort()
    .at(-1)!
  const head = JSON.stringify({
    '@context': OPENVEX_CONTEXT,
    '@id': idOf(source, inputHash),
    author: generatorOf(source),
    role: 'Generated draft, not reviewed',
    timestamp: zoned(judgedAt),
    version: 1,
  })
  const tail = JSON.stringify({
    [`${product}:draft`]: true,
    [`${product}:input_hash`]: `sha256:${inputHash}`,
    [`${product}_window`]: { start: zoned(start), end: zoned(judgedAt), min_hours: minHours },
  })
  return `${head.slice(0, -1)},"statements":[\n${statements.join(',\n')}],${tail.slice(1)}\n`
}

function idOf({ config, key }: Source, hash: string): string {
  const path = [key.namespace, key.kind, key.name].map(encodeURIComponent).join('/')
  return `https://${config.annotationPrefix}/vex/${path}/${hash}`
}

function statementOf(image: WatchedImage, [id, packageName, version, purl]: UnusedFinding, notes: string) {
  const part = purl ?? (version === '' ? packageName : `${packageName}@${version}`)
  return {
    vulnerability: { name: id },
    products: [{ '@id': productId(image), subcomponents: [{ '@id': part }] }],
    status: 'not_affected',
    justification: 'vulnerable_code_not_in_execute_path',
    status_notes: notes,
  }
}

const notesOf = ({ containers, since }: WatchedImage, judgedAt: string, minHours: number): string =>
  `Draft: a person has to review it. No file of the package was executed or loaded in ${containers.join(', ')}, ` +
  `watched from ${zoned(since)} to ${zoned(judgedAt)}, at least ${minHours} hours.`

const productId = ({ digest, repository, imageRef }: WatchedImage): string =>
  imageProduct(digest, repository ?? repositoryOfReference(imageRef))
