// Writes the CycloneDX 1.6 SBOM of the packages in the image: `npm run sbom [FILE]`; the default is dist/sbom.cdx.json.
// The same lock file gives the same bytes: the time is included only if SOURCE_DATE_EPOCH is set, in seconds.
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dependenciesOf, type Lock, type Package, packagesOf, readJson, readLock } from './packages.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
}

/** A package URL of type npm. The specification percent-encodes the at sign of a scope. */
const purl = (name: string, version: string) => `pkg:npm/${name.replace(/^@/, '%40')}@${encodeURIComponent(version)}`

/** Converts `sha512-<base64>` to the hexadecimal form of CycloneDX. Throws for a package without this hash. */
function hashes({ path, integrity }: Package) {
  const [, base64] = /^sha512-([A-Za-z0-9+/]{86}==)$/.exec(integrity ?? '') ?? []
  if (base64 === undefined) throw new Error(`${path} has no SHA-512`)
  return [{ alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') }]
}

function licenses(license: string | undefined) {
  if (license === undefined) return {}
  return { licenses: [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }] }
}

function named(name: string) {
  const [, group, rest] = /^(@[^/]+)\/(.+)$/.exec(name) ?? []
  return group === undefined ? { name } : { group, name: rest }
}

/** @param epoch seconds since 1970, or undefined for a document without a time */
export function sbom(lock: Lock, manifest: Manifest, epoch?: string) {
  const packages = packagesOf(lock).filter(({ isInImage }) => isInImage)
  const refs = new Map(packages.map(({ path, name, version }) => [path, purl(name, version)]))
  const self = purl(manifest.name, manifest.version)
  const components = new Map(
    packages.map((one) => {
      const ref = refs.get(one.path)!
      const { name, version, license } = one
      return [
        ref,
        {
          type: 'library',
          'bom-ref': ref,
          ...named(name),
          version,
          hashes: hashes(one),
          ...licenses(license),
          purl: ref,
        },
      ]
    }),
  )
  const needed = new Map([
    [self, new Set<string>()],
    ...packages.map(({ path }) => [refs.get(path)!, new Set<string>()] as const),
  ])
  for (const [path, ref] of [['', self] as const, ...refs])
    for (const to of dependenciesOf(lock, path)) if (refs.has(to)) needed.get(ref)!.add(refs.get(to)!)
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      ...(epoch === undefined ? {} : { timestamp: timeOf(epoch) }),
      component: {
        type: 'application',
        'bom-ref': self,
        name: manifest.name,
        version: manifest.version,
        description: manifest.description,
        ...licenses(manifest.license),
        purl: self,
      },
    },
    components: [...components.values()],
    dependencies: [...needed].map(([ref, on]) => ({ ref, dependsOn: [...on].sort() })),
  }
}

function timeOf(epoch: string): string {
  if (!/^\d{1,11}$/.test(epoch)) throw new Error(`SOURCE_DATE_EPOCH is no number of seconds: ${epoch}`)
  return `${new Date(Number(epoch) * 1000).toISOString().slice(0, 19)}Z`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const document = sbom(readLock(), readJson('package.json'), process.env.SOURCE_DATE_EPOCH || undefined)
  writeFileSync(resolve(process.argv[2] ?? join(ROOT, 'dist/sbom.cdx.json')), `${JSON.stringify(document, null, 2)}\n`)
}
