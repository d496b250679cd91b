/**
 * Documents of scanners that list the files of packages, and the payloads made from them. A list of a package manager
 * counts as its files; of anything else the places where the scanner found it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any
type Fields = Record<string, unknown>

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (name: string): Json =>
  JSON.parse(readFileSync(join(root, 'test/fixtures/in-use', `${name}.json`), 'utf8'))

const SCANNED_AT = '2026-01-02T03:04:05Z'
const payload = (digest: string, source: string, fields: Fields): Fields => ({
  ...{ schema_version: 1, image: { digest }, source, scanned_at: SCANNED_AT, ...fields },
})
const paths = (places: readonly { path: string }[]) => places.map(({ path }) => path)

/** A compiled program is its own target. */
const filesOfTrivy = ({ Target, Type }: Json, { InstalledFiles, FilePath }: Json): string[] =>
  InstalledFiles ?? (FilePath ? [FilePath] : Type === 'gobinary' ? [Target] : [])

export function sbomOfTrivy(digest: string, image: string): Fields {
  return payload(digest, 'trivy-operator', {
    scanner: { name: 'Trivy', vendor: 'Aqua Security' },
    format: 'CycloneDX',
    components: read(`trivy-${image}`).Results.flatMap((result: Json) =>
      (result.Packages ?? []).map((one: Json) => ({
        ...{ name: one.Name, version: one.Version, purl: one.Identifier.PURL, type: result.Type, class: result.Class },
        ...{ src_name: one.SrcName, file_paths: filesOfTrivy(result, one) },
      })),
    ),
  })
}

export function findingsOfTrivy(digest: string, image: string): Fields {
  return payload(digest, 'trivy-operator', {
    scanner: { name: 'Trivy', vendor: 'Aqua Security' },
    vulnerabilities: read(`trivy-${image}`).Results.flatMap(({ Target, Class, Type, Vulnerabilities }: Json) =>
      (Vulnerabilities ?? []).map((one: Json) => ({
        ...{ id: one.VulnerabilityID, severity: one.Severity, fixed_version: one.FixedVersion },
        package: { name: one.PkgName, version: one.InstalledVersion, type: Type, purl: one.PkgIdentifier.PURL },
        ...{ target: Target, class: Class, file_paths: one.PkgPath ? [one.PkgPath] : [] },
      })),
    ),
  })
}

export function sbomOfSyft(digest: string, image: string): Fields {
  const { artifacts, descriptor, schema } = read(`syft-${image}`)
  return payload(digest, 'registry', {
    scanner: { name: descriptor.name, version: descriptor.version },
    ...{ format: 'syft-json', spec_version: schema.version },
    components: artifacts.map((one: Json) => ({
      ...{ name: one.name, version: one.version, purl: one.purl, type: one.type },
      file_paths: ['deb', 'apk'].includes(one.type) ? paths(one.metadata.files) : paths(one.locations),
    })),
  })
}

export function findingsOfGrype(digest: string, image: string): Fields {
  const { matches, descriptor } = read(`grype-${image}`)
  return payload(digest, 'grype', {
    scanner: { name: descriptor.name, version: descriptor.version },
    vulnerabilities: matches.map(({ vulnerability, relatedVulnerabilities, artifact }: Json) => ({
      ...{ id: vulnerability.id, aliases: relatedVulnerabilities.map(({ id }: Json) => id) },
      package: { name: artifact.name, version: artifact.version, type: artifact.type, purl: artifact.purl },
      ...{ severity: vulnerability.severity, fixed_version: vulnerability.fix.versions.join(', ') },
      file_paths: paths(artifact.locations),
    })),
  })
}
