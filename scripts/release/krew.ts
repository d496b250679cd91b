// Writes the archive of the kubectl plugin, and its manifest for krew: krew.ts FOLDER ADDRESS, after `npm run build`
// and `npm run notices`.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PLACEHOLDER } from './chart.ts'
import { packageVersion } from './version.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MANIFEST = join(ROOT, 'wrangler-free-deploy/cli/krew.yaml')
const ARCHIVE = 'kubectl-telemetry_broker.tar.gz'

interface Release {
  /** Created if it does not exist. */
  readonly folder: string
  /** The address of the repository. */
  readonly address: string
  /** Files of the archive, by their paths. */
  readonly files?: readonly string[]
}

const BUILT = ['dist/ctb.mjs', 'dist/THIRD_PARTY_LICENCES.txt', 'LICENSE'].map((path) => join(ROOT, path))

export function releaseKrew({ folder, address, files = BUILT }: Release): void {
  mkdirSync(folder, { recursive: true })
  const archive = join(folder, ARCHIVE)
  pack(archive, files)
  const digest = createHash('sha256').update(readFileSync(archive)).digest('hex')
  const text = readFileSync(MANIFEST, 'utf8')
    .replace(/^#.*\n/gm, '')
    .replaceAll(PLACEHOLDER, address)
    .replaceAll('v0.0.0', `v${packageVersion()}`)
    .replace(/"0{64}"/, `"${digest}"`)
  writeFileSync(join(folder, 'telemetry-broker.yaml'), text)
}

/** The archive has the files side by side, without folders. */
function pack(archive: string, files: readonly string[]): void {
  const draft = mkdtempSync(join(tmpdir(), 'krew-'))
  try {
    const names = files.map((path) => path.slice(path.lastIndexOf('/') + 1))
    for (const [i, path] of files.entries()) copyFileSync(path, join(draft, names[i]!))
    const { status, stderr } = spawnSync('tar', ['-czf', archive, ...names], { cwd: draft, encoding: 'utf8' })
    if (status !== 0) throw new Error(`tar: ${stderr}`)
  } finally {
    rmSync(draft, { recursive: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, address, ...others] = process.argv.slice(2)
  if (folder === undefined || address === undefined || others.length > 0) throw new Error('krew.ts FOLDER ADDRESS')
  releaseKrew({ folder, address })
}
