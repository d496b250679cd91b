// Copies the version of package.json to all other places that state it. `npm version` runs it; a test compares.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const VERSION = String.raw`\d+\.\d+\.\d+(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?`
const CHANGELOG = 'CHANGELOG.md'

/** Files that state the version, with the text before it. openapi.json is generated from lib/version.ts. */
const PLACES: readonly (readonly [path: string, before: string])[] = [
  ['lib/version.ts', "VERSION = '"],
  ['Dockerfile', 'ARG VERSION='],
  ['wrangler-free-deploy/chart/Chart.yaml', '^version: '],
  ['wrangler-free-deploy/chart/Chart.yaml', '^appVersion: "'],
  ['wrangler-free-deploy/compose.yaml', 'cluster-telemetry-broker:'],
]

/** Documents may name the image with its tag, which is this version. */
const IN_DOCUMENTS = 'cluster-telemetry-broker:'

const pattern = (before: string) => new RegExp(`(?<=${before})${VERSION}`, 'gm')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

function documents(): string[] {
  const listed = spawnSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' })
  if (listed.status !== 0) throw new Error(`git ls-files: ${listed.stderr || listed.error}`)
  return listed.stdout.split('\n').filter((path) => path !== '' && path !== CHANGELOG)
}

function places(): (readonly [path: string, before: string])[] {
  return [...PLACES, ...documents().map((path) => [path, IN_DOCUMENTS] as const)]
}

/** The version of package.json, the source of all others. */
export const packageVersion = (): string => JSON.parse(read('package.json')).version

/** Returns every stated version with its file. Throws if a place has none. */
export function statedVersions(): { path: string; version: string }[] {
  return places().flatMap(([path, before]) => {
    const found = read(path).match(pattern(before)) ?? []
    if (found.length === 0 && before !== IN_DOCUMENTS) throw new Error(`${path} has no version after ${before}`)
    return found.map((version) => ({ path, version }))
  })
}

/**
 * Moves the unreleased entries of the changelog to the section of a version.
 * @param day of the release, YYYY-MM-DD
 */
export function released(changelog: string, version: string, day: string): string {
  const heading = '## [Unreleased]\n'
  if (!changelog.includes(heading)) throw new Error(`${CHANGELOG} has no ${heading.trim()}`)
  if (changelog.includes(`## [${version}]`)) throw new Error(`${CHANGELOG} has ${version} already`)
  return changelog.replace(heading, `${heading}\n## [${version}] - ${day}\n`)
}

function writeVersion(): void {
  const version = packageVersion()
  for (const [path, before] of places()) {
    const text = read(path)
    const changed = text.replace(pattern(before), version)
    if (changed !== text) writeFileSync(join(ROOT, path), changed)
  }
  writeFileSync(join(ROOT, CHANGELOG), released(read(CHANGELOG), version, new Date().toISOString().slice(0, 10)))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeVersion()
