/** The packages of package-lock.json, and which of them are in the image. */
import { readFileSync } from 'node:fs'

/** An entry of `packages` in a lock file of version 3, as far as it is read here. */
export interface Locked {
  readonly name?: string
  readonly version?: string
  /** SPDX expression, as the package states it. */
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

/** By path; the root is the empty one. */
export type Lock = Readonly<Record<string, Locked>>

export interface Package {
  /** Of its folder, below the root. */
  readonly path: string
  readonly name: string
  readonly version: string
  readonly license: string | undefined
  readonly integrity: string | undefined
  /** Whether the image has it: `npm ci --omit=dev --omit=optional` installs it. */
  readonly isInImage: boolean
}

const ROOT = new URL('../../', import.meta.url)
const FOLDER = 'node_modules/'

/** A JSON file of the repository. */
export const readJson = (path: string) => JSON.parse(readFileSync(new URL(path, ROOT), 'utf8'))

export const readLock = (): Lock => readJson('package-lock.json').packages

/** Every package but the root, by name and version. Throws for one without a version, or that is a link to a folder. */
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

/** The paths that the packages at a path get what they need from, found as Node does: in the folder nearest to them. */
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
