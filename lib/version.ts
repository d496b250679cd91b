import { existsSync, readFileSync } from 'node:fs'

// Beside lib/ in the sources, and beside dist/ once built.
const manifest = ['../package.json', '../../package.json'].map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url))

/** The version of the running broker, SemVer. */
export const BROKER_VERSION: string = manifest ? JSON.parse(readFileSync(manifest, 'utf8')).version : 'unknown'
