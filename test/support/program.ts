import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Arguments for Node that start one of our programs: the bundle that `npm test` made, or the source, which takes twice
 * as long.
 */
export function program(source: string): string[] {
  const build = process.env.BROKER_TEST_BUILD
  if (build === undefined) return ['--import', 'tsx', source]
  const bundle = join(build, source.replace(/\.ts$/, '.js'))
  if (!existsSync(bundle)) throw new Error(`${source} is not in PROGRAMS of scripts/test-build.mjs`)
  return ['--enable-source-maps', bundle]
}
