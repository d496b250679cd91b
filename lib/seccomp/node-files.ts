/** The profile files of a node (docs/contract.md#seccomp-distribution). */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { HttpError } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import { sortInSlices } from '../event-loop/sort-in-slices.ts'
import { MAX_NAME_CHARS, NOT_BLANK_PATTERN, name } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { isLongerThan } from '../text/utf8.ts'

/** Most elements of each of the two lists. A cluster has hundreds of profiles. */
export const MAX_LISTED_FILES = 10_000
const MAX_PATH_BYTES = 1_024
const MAX_HASH_BYTES = 128

const list = (what: string) =>
  documentedAs(
    z.custom<readonly unknown[]>((value) => Array.isArray(value), 'expected an array'),
    { type: 'array', maxItems: MAX_LISTED_FILES, items: {}, description: what },
  ).nullish()

/** The body of POST /seccomp/node-status. */
export const PostedNodeFiles = z
  .object({
    node_name: documentedAs(
      name.refine((text) => text.trim() !== '', 'must not be empty'),
      { type: 'string', maxLength: MAX_NAME_CHARS, pattern: NOT_BLANK_PATTERN },
    ),
    files: list(
      '`{path, hash}` of each file; a hash that is absent or blank is none. An element that is neither this nor a ' +
        'path is skipped.',
    ),
    paths: list('The same, or paths alone.'),
  })
  .meta({
    id: 'PostedNodeFiles',
    description: 'Both lists are one: each path once, a hash before none. Without a list the node has no files.',
  })
export type PostedNodeFiles = z.output<typeof PostedNodeFiles>

/** Hashes by path; null for a file without a hash. */
type Files = ReadonlyMap<string, string | null>

interface File {
  readonly path: string
  readonly hash: string | null
}

/**
 * The reported files of a node, and the number of elements that were skipped. The first hash of a path counts.
 * @throws HttpError 413 for a list that is too long
 */
export async function readNodeFiles({ files, paths }: PostedNodeFiles): Promise<{ files: Files; skipped: number }> {
  for (const [field, elements] of Object.entries({ files, paths }))
    if ((elements?.length ?? 0) > MAX_LISTED_FILES)
      throw new HttpError(413, `${field} has more than ${MAX_LISTED_FILES} elements`)
  const merged = new Map<string, string | null>()
  const slice = new Slice()
  let skipped = 0
  for (const element of [...(files ?? []), ...(paths ?? [])]) {
    const file = fileOf(element)
    if (file === null) skipped++
    else if (!merged.get(file.path)) merged.set(file.path, file.hash)
    if (slice.isOver) await slice.next()
  }
  return { files: merged, skipped }
}

function fileOf(element: unknown): File | null {
  if (typeof element === 'string') return fileOf({ path: element })
  if (typeof element !== 'object' || element === null) return null
  const { path, hash } = element as { path?: unknown; hash?: unknown }
  if (typeof path !== 'string' || path.trim() === '' || isLongerThan(path, MAX_PATH_BYTES)) return null
  if (hash === undefined || hash === null) return { path, hash: null }
  if (typeof hash !== 'string' || isLongerThan(hash, MAX_HASH_BYTES)) return null
  return { path, hash: hash.trim() === '' ? null : hash }
}

/** A set of files. It is stored once, however many nodes have it. */
interface FileSet {
  /** SHA-256 of its paths and hashes, in hexadecimal digits. */
  readonly id: string
  readonly paths: readonly string[]
  /** In the order of the paths. */
  readonly hashes: readonly (string | null)[]
}

export async function fileSetOf(files: Files): Promise<FileSet> {
  const slice = new Slice()
  // Any fixed order will do: it makes equal sets have equal ids.
  const paths = await sortInSlices([...files.keys()], (a, b) => a < b, slice)
  const hashes: (string | null)[] = []
  const sum = createHash('sha256')
  for (const path of paths) {
    const hash = files.get(path)!
    hashes.push(hash)
    sum.update(`${JSON.stringify([path, hash])}\n`)
    if (slice.isOver) await slice.next()
  }
  return { id: sum.digest('hex'), paths, hashes }
}
