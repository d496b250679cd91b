/**
 * Documents of scanners (Grype and Syft with `-o json`, Trivy with `--format json`, a VulnerabilityReport of
 * trivy-operator), and the payloads made from them: all values are copied, also empty ones, and nothing is merged.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any
type Fields = Record<string, unknown>

const root = fileURLToPath(new URL('../..', import.meta.url))
const textOf = (file: string): string => readFileSync(join(root, 'test/fixtures/scanners', file), 'utf8')
const read = (name: string): Json => JSON.parse(textOf(`${name}.json`))

/** The number of packages of each type in a table of Syft; a line can stand for several. */
export function countedBySyft(image: string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const line of textOf(`syft-${image}.txt`).trim().split('\n').slice(1)) {
    const [, , type] = line.split(/\s+/) as [string, string, string]
    counts[type] = (counts[type] ?? 0) + 1 + Number(/\(\+(\d+) duplicate/.exec(line)?.[1] ?? 0)
  }
  return counts
}

/** The number of lines of each severity in the table that Grype printed for the image. */
export function countedByGrype(image: string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const line of textOf(`grype-${image}.txt`).trim().split('\n').slice(1)) {
    const severity = line.trim().split(/\s+/)[5]!.toUpperCase()
    counts[severity] = (counts[severity] ?? 0) + 1
  }
  return counts
}

const payload = (digest: string, source: string, scanned_at: string, fields: Fields): Fields => ({
  schema_version: 1,
  image: { digest, ref: 'registry.test/team/app:v1', registry: 'registry.test', repository: 'team/app', tag: 'v1' },
  source,
  scanned_at,
  ...fields,
})

export function ofGrype(digest: string, document = 'grype'): Fields {
  const { matches, descriptor, distro } = read(document)
  return payload(digest, 'grype', descriptor.timestamp ?? '2026-01-02T03:04:05Z', {
    scanner: { name: descriptor.name, version: descriptor.version },
    os: { family: distro.name, name: distro.version },
    db_updated_at: descriptor.db?.status.built,
    sbom_sources: ['registry'],
    vulnerabilities: matches.map(({ vulnerability: v, relatedVulnerabilities, artifact }: Json) => ({
      id: v.id,
      aliases: relatedVulnerabilities.map((one: Json) => one.id),
      package: { name: artifact.name, version: artifact.version, type: artifact.type, purl: artifact.purl },
      fixed_version: v.fix.versions.join(', '),
      severity: v.severity,
      score: v.cvss[0]?.metrics.baseScore,
      cvss: v.cvss.length > 0 ? { nvd: { v3_score: v.cvss[0].metrics.baseScore, v3_vector: v.cvss[0].vector } } : null,
      primary_url: v.dataSource,
      file_paths: artifact.locations.map((one: Json) => one.path),
      kev: v.knownExploited ? true : undefined,
      kev_date_added: v.knownExploited ? `${v.knownExploited[0].dateAdded}T00:00:00Z` : '',
      epss: v.epss?.[0].epss,
      epss_percentile: v.epss?.[0].percentile,
    })),
  })
}

/** The scores by scoring provider. Few findings have one from each. */
const scoresOf = (cvss: Record<string, Json>): Fields =>
  Object.fromEntries(
    Object.entries(cvss).map(([who, { V3Score, V3Vector }]) => [who, { v3_score: V3Score, v3_vector: V3Vector }]),
  )

export function ofTrivy(digest: string): Fields {
  const { Results, CreatedAt, Metadata } = read('trivy')
  return payload(digest, 'trivy-operator', CreatedAt, {
    scanner: { name: 'Trivy', vendor: 'Aqua Security' },
    os: { family: Metadata.OS.Family, name: Metadata.OS.Name },
    vulnerabilities: Results.flatMap(({ Target, Class, Type, Vulnerabilities }: Json) =>
      (Vulnerabilities ?? []).map((v: Json) => ({
        id: v.VulnerabilityID,
        aliases: v.VendorIDs,
        package: { name: v.PkgName, version: v.InstalledVersion, type: Type, purl: v.PkgIdentifier.PURL },
        fixed_version: v.FixedVersion,
        severity: v.Severity,
        score: (v.CVSS?.nvd ?? v.CVSS?.redhat)?.V3Score,
        cvss: v.CVSS && scoresOf(v.CVSS),
        title: v.Title,
        primary_url: v.PrimaryURL,
        target: Target,
        class: Class,
        published_at: v.PublishedDate,
        last_modified_at: v.LastModifiedDate,
        file_paths: v.PkgPath ? [v.PkgPath] : [],
      })),
    ),
  })
}

/** The summary that trivy-operator made of its report, with the names of the broker; it counts a repeated entry twice. */
export const operatorSummary = (document: string): Record<string, number> => {
  const { criticalCount, highCount, mediumCount, lowCount, noneCount, unknownCount } = read(document).report.summary
  return {
    CRITICAL: criticalCount,
    HIGH: highCount,
    MEDIUM: mediumCount,
    LOW: lowCount,
    NONE: noneCount,
    UNKNOWN: unknownCount,
  }
}

export function ofTrivyOperator(digest: string, document: string): Fields {
  const { metadata, report } = read(document)
  const label = (name: string) => metadata.labels[`trivy-operator.${name}`]
  return payload(digest, 'trivy-operator', report.updateTimestamp, {
    scanner: report.scanner,
    os: report.os,
    observed_in: [
      {
        namespace: label('resource.namespace'),
        kind: label('resource.kind'),
        name: label('resource.name'),
        container: label('container.name'),
      },
    ],
    vulnerabilities: report.vulnerabilities.map((v: Json) => ({
      id: v.vulnerabilityID,
      package: { name: v.resource, version: v.installedVersion, type: v.packageType, purl: v.packagePURL },
      fixed_version: v.fixedVersion,
      severity: v.severity,
      score: v.score,
      cvss: v.cvss && scoresOf(v.cvss),
      title: v.title,
      primary_url: v.primaryLink,
      target: v.target,
      class: v.class,
      published_at: v.publishedDate,
      last_modified_at: v.lastModifiedDate,
      file_paths: v.packagePath ? [v.packagePath] : [],
    })),
  })
}

export function ofSyft(digest: string, image: string): Fields {
  const { artifacts, descriptor, schema } = read(`syft-${image}`)
  return payload(digest, 'registry', '2026-01-02T03:04:05Z', {
    scanner: { name: descriptor.name, version: descriptor.version },
    format: 'syft-json',
    spec_version: schema.version,
    sbom_trust: '',
    components: artifacts.map((a: Json) => ({
      name: a.name,
      version: a.version,
      purl: a.purl,
      type: a.type,
      src_name: a.metadata?.source,
      src_version: a.metadata?.sourceVersion,
      licenses: a.licenses.map((one: Json) => one.value),
      layer_digest: a.locations[0]?.layerID,
      file_paths: a.locations.map((one: Json) => one.path),
    })),
  })
}
