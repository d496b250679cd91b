// Refuses packages whose licence is not allowed, and writes LICENCES.md, the list of those in the image. `--check`
// writes nothing. A test compares the list.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Package, packagesOf, readJson, readLock } from './packages.ts'
import { isAllowed, NoExpression } from './spdx.ts'

export interface Allowed {
  /** SPDX licences that packages in the image may have. */
  readonly image: readonly string[]
  /** Further licences for packages that are used for development only and are not distributed. */
  readonly development: readonly string[]
  /** Licences of packages whose lock entry states none, by name, taken from the package itself. */
  readonly stated: Readonly<Record<string, string>>
}

const PAGE = new URL('../../LICENCES.md', import.meta.url)
const BETWEEN = /(<!-- licences:start -->\n)[\s\S]*?(<!-- licences:end -->)/

export const readAllowed = (): Allowed => readJson('scripts/release/licences.allowed.json')

/** Returns a line for each refused package, and for each stated licence that is not needed. */
export function refusals(packages: readonly Package[], allowed: Allowed): string[] {
  const inImage = new Set(allowed.image)
  const anywhere = new Set([...allowed.image, ...allowed.development])
  const refused = packages.flatMap((one) => {
    const license = one.license ?? allowed.stated[one.name]
    const who = `${one.path} ${one.version}`
    if (license === undefined) return [`${who} states no licence`]
    try {
      if (isAllowed(license, one.isInImage ? inImage : anywhere)) return []
      return [`${who}: ${license} is not allowed ${one.isInImage ? 'in the image' : 'in development'}`]
    } catch (error) {
      if (!(error instanceof NoExpression)) throw error
      return [`${who}: ${license} is no SPDX expression`]
    }
  })
  const withoutLicence = new Set(packages.filter(({ license }) => license === undefined).map(({ name }) => name))
  const needless = Object.keys(allowed.stated).filter((name) => !withoutLicence.has(name))
  return [...refused, ...needless.map((name) => `${name} needs no stated licence any more`)]
}

/** Returns LICENCES.md with the current table. */
export function pageWithTable(packages: readonly Package[]): string {
  const before = readFileSync(PAGE, 'utf8')
  if (!BETWEEN.test(before)) throw new Error('LICENCES.md has no <!-- licences:start --> and <!-- licences:end -->')
  const lines = packages
    .filter(({ isInImage }) => isInImage)
    .map(({ name, version, license }) => `| ${name} | ${version} | ${license} |`)
  const table = ['| Package | Version | Licence |', '|---|---|---|', ...new Set(lines)].join('\n')
  return before.replace(BETWEEN, (_, start: string, end: string) => `${start}${table}\n${end}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const packages = packagesOf(readLock())
  const refused = refusals(packages, readAllowed())
  for (const line of refused) process.stderr.write(`${line}\n`)
  if (refused.length > 0) process.exitCode = 1
  else if (process.argv[2] !== '--check') writeFileSync(PAGE, pageWithTable(packages))
}
