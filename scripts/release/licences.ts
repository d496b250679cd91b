// Refuses packages whose licence is not allowed, and writes LICENCES.md: those in the image. `--check` writes nothing; a test compares.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Package, packagesOf, readJson, readLock } from './packages.ts'
import { isAllowed, NoExpression } from './spdx.ts'

export interface Allowed {
  /** SPDX licences that packages in the image may have. */
  readonly image: readonly string[]
  /** Those that packages of development, which are not handed on, may have besides. */
  readonly development: readonly string[]
  /** By name: licences of packages of which the lock file says none, as the package that brings them states. */
  readonly stated: Readonly<Record<string, string>>
}

const PAGE = new URL('../../LICENCES.md', import.meta.url)
const BETWEEN = /(<!-- licences:start -->\n)[\s\S]*?(<!-- licences:end -->)/

export const readAllowed = (): Allowed => readJson('scripts/release/licences.allowed.json')

/** A line for each package that may not be used, and for each exception that is not needed. */
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
  const silent = new Set(packages.filter(({ license }) => license === undefined).map(({ name }) => name))
  const needless = Object.keys(allowed.stated).filter((name) => !silent.has(name))
  return [...refused, ...needless.map((name) => `${name} needs no stated licence any more`)]
}

/** LICENCES.md with the table of today. */
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
