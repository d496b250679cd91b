/**
 * The built console, read into memory when a program starts. Requests look up names in this table, so no part of a
 * request ever reaches the disk.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { constants, gzipSync } from 'node:zlib'
import type { Log } from '../observability/log.ts'

/**
 * Source of the read token, as written into the page: the user types it, a proxy adds it, or the broker asks for none.
 */
export type TokenSource = 'browser' | 'proxy' | 'none'

export interface ConsoleFile {
  readonly contentType: string
  readonly plain: Buffer
  /** Compressed with gzip; null if that is not smaller. */
  readonly packed: Buffer | null
  /** Strong ETags: the two codings differ in their bytes, so each has its own. */
  readonly plainTag: string
  readonly packedTag: string
}

/** The files by their path below `/console/`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>

/** The one HTML page, which shows all views. */
export const INDEX = 'index.html'

/** `dist/console`, relative to the compiled file and also to the source file, which tests run. */
const BUILD = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../dist/console' : '../../console', import.meta.url),
)

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}
const OTHER_TYPE = 'application/octet-stream'

const TOKEN_META = /(<meta name="console-token" content=")browser(")/

/** Reads the console of a build. Returns null and logs a warning if there is none. */
export function openConsole(options: { tokenSource: TokenSource; log: Log; folder?: string }): ConsoleFiles | null {
  const { tokenSource, log, folder = BUILD } = options
  try {
    return readConsole(folder, tokenSource)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    log.warn({ folder, reason: code ?? message }, 'CONSOLE is on, but no console was built: see `npm run build`')
    return null
  }
}

/** @throws if the folder or its page cannot be read, or the page does not name the source of the token */
function readConsole(folder: string, tokenSource: TokenSource): ConsoleFiles {
  const files = new Map(pathsBelow(folder).map((path) => [path, fileOf(path, readFileSync(join(folder, path)))]))
  const page = files.get(INDEX)?.plain.toString()
  if (page === undefined) throw new Error(`${INDEX} is missing`)
  if (!TOKEN_META.test(page)) throw new Error(`${INDEX} lacks its meta tag console-token`)
  return files.set(INDEX, fileOf(INDEX, Buffer.from(page.replace(TOKEN_META, `$1${tokenSource}$2`))))
}

/** Names of regular files only, with `/` as the separator. */
function pathsBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
}

function fileOf(path: string, plain: Buffer): ConsoleFile {
  const packed = gzipSync(plain, { level: constants.Z_BEST_COMPRESSION })
  const digest = createHash('sha256').update(plain).digest('base64url')
  return {
    contentType: CONTENT_TYPES[extname(path)] ?? OTHER_TYPE,
    plain,
    packed: packed.length < plain.length ? packed : null,
    plainTag: `"${digest}"`,
    packedTag: `"${digest}-gzip"`,
  }
}
