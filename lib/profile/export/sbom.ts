/** The SBOMs of an export, one for each image (docs/contract.md#workload-profiles). */
import { countComponents, readCycloneDx } from '../../supply-chain/cyclonedx.ts'
import { withEscapes } from '../../text/commented-out.ts'
import { quoted } from '../../text/yaml.ts'
import type { Profile } from '../record/profile.ts'
import { compareTimes } from '../times.ts'
import { MAX_COMPONENTS, MAX_IMAGES } from './charge.ts'
import {
  type Available,
  type ExportDocument,
  type Missing,
  madeOr,
  missing,
  type SbomImage,
  type Source,
} from './document.ts'

const CONTENT_TYPE = 'application/vnd.cyclonedx+json'
const ANY = { source: null, reportDigest: null }
const HEX_CHARS = 12
const NO_SBOM = 'no SBOM of this image is stored: its contents are not known'
const TOO_MANY_IMAGES = `the workload has more images than the ${MAX_IMAGES} of a bundle`
const NOT_READ = 'the workload has more images than its profile reads: the others are not known'
const REPLACED = 'its SBOM was replaced meanwhile: export again'

type Container = Profile['dimensions']['images']['containers'][number]
type Target = Pick<SbomImage, 'containers' | 'digest' | 'imageRef'>

/** The documents, in the order of containers. All of them together have a bounded number of components. */
export async function sbomDocuments(source: Source): Promise<ExportDocument[]> {
  const { containers, truncated } = source.profile.dimensions.images
  const targets = targetsOf(containers)
  if (targets.length === 0) return [missing('sbom', 'no image of the workload is known')]
  const taken = new Set<string>()
  const documents: ExportDocument[] = []
  let left = MAX_COMPONENTS
  for (const [n, target] of targets.entries()) {
    const fileName = fileNameOf(target, taken)
    const made =
      n < MAX_IMAGES ? await sbomOf(source, target, fileName, left) : missingSbom(target, fileName, TOO_MANY_IMAGES)
    left -= ('content' in made && made.image!.components) || 0
    documents.push(made)
  }
  if (truncated) documents.push(missing('sbom', NOT_READ))
  return documents
}

/** The images that containers run; of a container that runs none its newest image. */
function targetsOf(containers: readonly Container[]): Target[] {
  const targets = new Map<string, { containers: string[]; digest: string; imageRef: string }>()
  for (const { name, running, previous } of containers.filter(({ stale }) => !stale)) {
    const newest = [...previous].sort((a, b) => compareTimes(b.lastSeen, a.lastSeen)).slice(0, 1)
    for (const { digest, imageRef } of running.length > 0 ? running : newest) {
      const target = targets.get(digest) ?? { containers: [], digest, imageRef }
      targets.set(digest, target)
      if (!target.containers.includes(name)) target.containers.push(name)
    }
  }
  return [...targets.values()]
}

/** `sbom-<first container>-<12 digits of the digest>.cdx.json`, with the whole digest where that is taken. */
function fileNameOf({ containers, digest }: Target, taken: Set<string>): string {
  const asName = (text: string) => text.replace(/[^A-Za-z0-9._-]/g, '-')
  const hex = digest.slice(digest.indexOf(':') + 1)
  const named = (digits: string) => `sbom-${asName(containers[0]!)}-${digits}.cdx.json`
  const short = named(asName(hex.slice(0, HEX_CHARS)))
  const name = taken.has(short) ? named(asName(digest)) : short
  taken.add(name)
  return name
}

async function sbomOf(source: Source, target: Target, fileName: string, left: number): Promise<Available | Missing> {
  const { db, config } = source
  const count = await countComponents(db.read, target.digest, ANY)
  if (count === null) return missingSbom(target, fileName, NO_SBOM)
  if (count > left) return missingSbom(target, fileName, tooMany(count, left))
  const found = await readCycloneDx(db.read, target.digest, ANY, config.wireNames)
  if (found === null || found.report.itemCount !== count) return missingSbom(target, fileName, REPLACED)
  const pages = await madeOr(() => pagesOf(found))
  if ('reason' in pages) return missingSbom(target, fileName, REPLACED)
  const { source: from, sbomTrust, scannedAt } = found.report
  return {
    ...{ artifact: 'sbom', fileName, apiVersion: null, kind: null, contentType: CONTENT_TYPE },
    image: { ...target, source: from, sbomTrust, scannedAt: `${scannedAt}+00:00`, components: count },
    content: `${found.head}[\n${onLines(pages)}]${withEscapes(found.tail.toString())}\n`,
    applyWith: `nothing to apply: an inventory for scanners and reviewers, ${countText(count)}`,
    title:
      `CycloneDX SBOM ${fileName} for ${target.digest} (${target.containers.map(quoted).join(', ')}), ` +
      `source ${from}, trust ${sbomTrust ?? 'unknown'}, ${countText(count)}`,
  }
}

type Document = NonNullable<Awaited<ReturnType<typeof readCycloneDx>>>

async function pagesOf({ first, next }: Document): Promise<Buffer[]> {
  const pages = [first.json]
  for (let { last } = first; last !== null; ) {
    const page = await next(last)
    pages.push(page.json)
    last = page.last
  }
  return pages
}

const countText = (count: number) =>
  count === 0 ? '0 components reported' : `${count} component${count === 1 ? '' : 's'}`

const tooMany = (count: number, left: number) =>
  `its SBOM has ${count} components, and ${left} are left of the ${MAX_COMPONENTS} of a bundle; read it with ` +
  'GET /images/{digest}/sbom/cyclonedx'

const missingSbom = (target: Target, fileName: string, reason: string): Missing => ({
  ...{ artifact: 'sbom', fileName, reason },
  image: { ...target, source: null, sbomTrust: null, scannedAt: null, components: null },
})

/**
 * The components of all pages, a line for each. Inside of strings a quote is escaped, so the text between two
 * components is never part of one.
 */
const onLines = (pages: readonly Buffer[]): string =>
  pages
    .filter((page) => page.length > 0)
    .map((page) => withEscapes(page.toString()).replaceAll('},{"bom-ref":"c', '},\n{"bom-ref":"c'))
    .join(',\n')
