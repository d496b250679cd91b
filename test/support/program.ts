import { join } from 'node:path'

/** Node's arguments that start one of our programs: as `npm test` has compiled it, or from its source, which takes twice as long. */
export function program(source: string): string[] {
  const build = process.env.BROKER_TEST_BUILD
  return build === undefined
    ? ['--import', 'tsx', source]
    : ['--enable-source-maps', join(build, source.replace(/\.ts$/, '.js'))]
}
