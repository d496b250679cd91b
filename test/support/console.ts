/** A small build of the console in a temporary folder, removed at the end of the test file. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import { openConsole, type TokenSource } from '../../lib/console/files.ts'
import { noLog } from './log.ts'

export const SCRIPT = `${'console.table([])\n'.repeat(400)}`
/** The page as it is served where `tokenSource` is that of the token. */
export const page = (tokenSource: TokenSource) =>
  `<!doctype html><meta name="console-token" content="${tokenSource}" /><title>Console</title>`

export const FILES: Readonly<Record<string, string>> = {
  'index.html': page('browser'),
  'icon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'assets/index-AbC_12-x.js': SCRIPT,
  'assets/map-worker-Zz09.js': 'postMessage(1)',
  'assets/index-00ff.css': 'p{margin:0}',
}

/** The headers of every answer, exactly. */
export const SECURITY = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const root = mkdtempSync(join(tmpdir(), 'console-'))
after(() => rmSync(root, { recursive: true, force: true }))
let count = 0

/** A folder with these files. */
export function consoleFolder(files: Readonly<Record<string, string>> = FILES): string {
  const folder = join(root, String(count++))
  mkdirSync(folder)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

/** What is served of a folder. */
export const openFolder = (tokenSource: TokenSource, folder = consoleFolder()) =>
  openConsole({ tokenSource, folder, log: noLog })
