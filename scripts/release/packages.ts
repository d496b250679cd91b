/** The packages of package-lock.json, and which of them the image contains. */
import { readFileSync } from 'node:fs'

/** An entry of `packages` in a lock file of version 3, as far as it is needed here. */
export interface Locked {
  readonly name?: string
  readonly version?: string
  /** The SPDX expression that the package states. */
  readonly license?: string
  /** Subresource Integrity of its archive. */
  readonly integrity?: string
  readonly link?: boolean
  readonly dev?: boolean
  readonly optional?: boolean
  readonly devOptional?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** By path; the root has the empty path. */
export type Lock = Readonly<Record<string, Locked>>

export interface Package {
  /** The path of its folder below the root. */
  readonly path: string
  readonly name: string
  readonly version: string
  readonly license: string | undefined
  readonly integrity: string | undefined
  /** Whether the image contains it: `npm ci --omit=dev --omit=optional` installs it. */
  readonly isInImage: boolean
}

const ROOT = new URL('../../', import.meta.url)
const FOLDER = 'node_modules/'

/** A JSON file of the repository. */
export const readJson = (path: string) => JSON.parse(readFileSync(new URL(path, ROOT), 'utf8'))

export const readLock = (): Lock => readJson('package-lock.json').packages

/**
 * Returns all packages but the root, by name and version. Throws for one without a version or one that links to a
 * folder.
 */
export function packagesOf(lock: Lock): Package[] {
  const found = Object.entries(lock).flatMap(([path, { name, version, license, integrity, ...entry }]) => {
    if (path === '') return []
    if (version === undefined || entry.link) throw new Error(`${path} is no package of a registry`)
    const isInImage = !(entry.dev || entry.optional || entry.devOptional)
    return [
      {
        path,
        name: name ?? path.slice(path.lastIndexOf(FOLDER) + FOLDER.length),
        version,
        license,
        integrity,
        isInImage,
      },
    ]
  })
  return found.sort((a, b) => compare(a.name, b.name) || compare(a.version, b.version) || compare(a.path, b.path))
}

/** Returns the paths of the packages that a package resolves its dependencies to: like Node, in the nearest folder. */
export function dependenciesOf(lock: Lock, path: string): string[] {
  const { dependencies, optionalDependencies, peerDependencies } = lock[path]!
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies }).flatMap((name) => {
    for (let folder = path; ; folder = folder.slice(0, Math.max(folder.lastIndexOf(`/${FOLDER}`), 0))) {
      const candidate = `${folder === '' ? '' : `${folder}/`}${FOLDER}${name}`
      if (candidate in lock) return [candidate]
      if (folder === '') return []
    }
  })
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
