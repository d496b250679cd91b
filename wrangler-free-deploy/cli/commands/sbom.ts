import { pageRows, queryOf } from '../api/parameters.ts'
import { EXIT, Failure } from '../failure.ts'
import { digestArgument, wholeDigest } from '../list/digest.ts'
import { type ListFlags, routeCommand, showPages } from '../list/listing.ts'
import { timeText } from '../output/cell.ts'
import { download } from '../output/download.ts'
import { counted } from '../output/lines.ts'
import type { View } from '../output/show.ts'
import { guessTexts, type RetiredGuess } from '../vulnerabilities/columns.ts'

const ROUTE = '/images/{digest}/sbom'

interface Report {
  readonly source: string
  readonly reportDigest: string
  readonly join: string
  readonly scannedAt: string
  readonly itemCount: number
  readonly sbomTrust: string | null
}

interface Component {
  readonly name: string
  readonly version: string | null
  readonly purl: string | null
  readonly type: string | null
  readonly srcName: string | null
  readonly srcVersion: string | null
  readonly licenses: readonly string[]
  readonly layerDigest: string | null
  readonly filePaths: readonly string[]
  readonly inUseState: string
  readonly inUseDetail: { readonly reason: string | null }
}

interface SbomPage {
  readonly digest: string
  readonly reports: readonly Report[]
  readonly retiredGuesses: readonly RetiredGuess[]
  readonly report: Report | null
  readonly items: readonly Component[]
  readonly nextAfter: number | null
}

/** The components of one SBOM. @throws Failure if another one takes its place between two pages */
const viewOf = (): View<SbomPage, Component> => ({
  rowsOf: oneReport(),
  columns: [
    { header: 'NAME', of: ({ name }) => name },
    { header: 'VERSION', of: ({ version }) => version },
    { header: 'TYPE', of: ({ type }) => type },
    { header: 'LICENSES', of: ({ licenses }) => licenses },
    { header: 'IN USE', of: ({ inUseState }) => inUseState },
    { header: 'WHY USE UNKNOWN', of: ({ inUseDetail }) => inUseDetail.reason, isWide: true },
    { header: 'PURL', of: ({ purl }) => purl, isWide: true },
    { header: 'SOURCE PACKAGE', of: ({ srcName }) => srcName, isWide: true },
    { header: 'SOURCE VERSION', of: ({ srcVersion }) => srcVersion, isWide: true },
    { header: 'LAYER', of: ({ layerDigest }) => layerDigest, isWide: true },
    { header: 'FILES', of: ({ filePaths }) => filePaths, isWide: true },
  ],
  nameOf: ({ purl, name }) => purl ?? name,
  said: ({ digest, report, reports, retiredGuesses }) => [
    report === null
      ? `no SBOM of ${digest} was found: its components are unknown, not absent`
      : `from the SBOM of ${sourceText(report, digest)}`,
    ...reports
      .filter(({ source, reportDigest }) => source !== report?.source || reportDigest !== report.reportDigest)
      .map((other) => `another one is that of ${sourceText(other, digest)}: see --source and --report-digest`),
    ...guessTexts(retiredGuesses),
  ],
})

function oneReport(): View<SbomPage, Component>['rowsOf'] {
  const keyOf = (report: Report | null) => report && `${report.source} ${report.reportDigest} ${report.scannedAt}`
  let first: string | null | undefined
  return ({ report, items }) => {
    first ??= keyOf(report)
    if (first === keyOf(report)) return items
    throw new Failure('the SBOM was replaced while it was read: ask again', EXIT.endedEarly)
  }
}

function sourceText({ source, reportDigest, join, scannedAt, itemCount, sbomTrust }: Report, digest: string): string {
  const of = reportDigest === digest ? '' : ` for ${reportDigest} (${join})`
  const trust = sbomTrust === null ? '' : `, ${sbomTrust}`
  return `${source}${of}, scanned ${timeText(scannedAt, true)}, ${counted(itemCount, 'component')}${trust}`
}

export const sbom = routeCommand(
  {
    routes: [ROUTE],
    positional: [digestArgument],
    hasLimit: true,
    flags: {
      cyclonedx: {
        ...({ kind: 'boolean', optional: true, withNegated: false } as const),
        brief: 'The whole SBOM as a document of CycloneDX 1.5.',
      },
    },
    brief: 'List the components of an image from one SBOM',
  },
  async (context, flags, [given]) => {
    if (flags.cyclonedx) refuse(flags)
    const path = ['images', await wholeDigest(context, flags, given!), 'sbom']
    const query = queryOf(ROUTE, flags)
    if (!flags.cyclonedx)
      return showPages(context, flags, { path, query }, viewOf(), {
        nextOf: ({ nextAfter }) => nextAfter,
        maxRows: pageRows(ROUTE),
      })
    return download(context, flags, {
      ...{ method: 'GET', path: [...path, 'cyclonedx'], query, expects: 'application/vnd.cyclonedx+json' },
    })
  },
)

/** The document is whole, and JSON. */
function refuse({ limit, after, output }: ListFlags): void {
  if (limit !== undefined || after !== undefined)
    throw new Failure('--cyclonedx: expected no --limit and no --after', EXIT.usage)
  if (output !== undefined && output !== 'json')
    throw new Failure('--cyclonedx: expected no --output other than json', EXIT.usage)
}
