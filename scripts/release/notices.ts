// Writes the full licences of the packages in the image: `npm run notices [FILE]`; the default is
// dist/THIRD_PARTY_LICENCES.txt.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Package, packagesOf, readLock } from './packages.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** Section 4(d) of Apache-2.0 requires that NOTICE is distributed too. */
const TEXT = /^(licen[cs]e|copying|notice|unlicense)([.-].*)?$/i
const RULE = '-'.repeat(80)

/**
 * Returns the text of all licences; for a package without one, the licence that it states. Throws if the locked version
 * is not installed.
 */
export function notices(packages: readonly Package[], root: string): string {
  const parts = packages
    .filter(({ isInImage }) => isInImage)
    .map(({ path, name, version, license }) => {
      const folder = join(root, path)
      const manifest = existsSync(folder) ? JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) : {}
      if (manifest.version !== version)
        throw new Error(`${name}: ${version} is locked, and ${manifest.version ?? 'none'} installed`)
      const files = readdirSync(folder).filter((file) => TEXT.test(file))
      const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim())
      if (files.length === 0)
        texts.push(`The package holds no text of its licence. By ${author(manifest)}; it states: ${manifest.license}.`)
      return `${name} ${version} (${license})\n\n${texts.join('\n\n')}\n`
    })
  return [...new Set(parts)].join(`\n${RULE}\n\n`)
}

/** A person in package.json is an object or a line. */
const author = ({ author }: { author?: string | { name: string } }) =>
  typeof author === 'object' ? author.name : (author ?? 'its authors')

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(
    resolve(process.argv[2] ?? join(ROOT, 'dist/THIRD_PARTY_LICENCES.txt')),
    notices(packagesOf(readLock()), ROOT),
  )
