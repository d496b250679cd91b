/**
 * Runs programs of an image like a container: as the user of the image, without capabilities, with the image as its
 * read-only root. That needs root and a mount namespace; without them the programs run as the current user in the
 * folder of the image.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Image } from './image.ts'

/** Folders of this machine that Node and a shell need; in the image the base has them. */
const SYSTEM_FOLDERS = ['usr', 'bin', 'sbin', 'lib', 'lib32', 'lib64', 'etc', 'dev', 'proc']
/** The folder for the Node that runs the tests. */
const NODE_FOLDER = '/node'

// $1: the root, $2: Node, $3: the user, $4: the group, $5: the working directory, the rest: the program. The mounts end
// with it.
const ENTER = `
  root=$1 node=$2 uid=$3 gid=$4 workdir=$5; shift 5
  mount --bind "$root" "$root"
  for folder in ${SYSTEM_FOLDERS.join(' ')}; do
    [ -d "/$folder" ] || continue
    mount --bind "/$folder" "$root/$folder"
    mount -o remount,bind,ro "$root/$folder"
  done
  mount --bind "$node" "$root${NODE_FOLDER}/node"
  mount -o remount,bind,ro "$root"
  exec chroot "$root" setpriv --reuid "$uid" --regid "$gid" --clear-groups --bounding-set=-all --no-new-privs \\
    env --chdir="$workdir" "$@"`

/** The reason why programs cannot be confined here; undefined if they can. */
export function whyOpen(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can give a process another root and user'
  const { status, stderr } = spawnSync('unshare', [
    '--mount',
    '--propagation',
    'private',
    'setpriv',
    '--clear-groups',
    'true',
  ])
  return status === 0 ? undefined : `no mount namespace: ${String(stderr ?? 'no unshare').trim()}`
}

/** Creates the mount points that the image does not have. */
export function prepareRoot({ root }: Image): void {
  for (const folder of [...SYSTEM_FOLDERS, NODE_FOLDER]) mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, NODE_FOLDER, 'node'), '')
}

export interface Container {
  readonly process: ChildProcess
  readonly stdout: string
  readonly stderr: string
  /** Lines of stdout that are JSON. */
  readonly log: readonly Record<string, unknown>[]
  readonly hasExited: boolean
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

const running = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Like `docker run`: `words` are the whole command line, and `env` is added to the environment of the image. */
export function runContainer(
  image: Image,
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Container {
  const isShutIn = whyOpen() === undefined
  const [uid, gid] = image.user.split(':')
  const program = isShutIn
    ? [
        'unshare',
        '--mount',
        '--propagation',
        'private',
        '/bin/sh',
        '-ec',
        ENTER,
        'sh',
        image.root,
        process.execPath,
        uid!,
        gid!,
        image.workdir,
      ]
    : []
  const [file, ...args] = [...program, ...words] as [string, ...string[]]
  const path = `${isShutIn ? NODE_FOLDER : dirname(process.execPath)}:/usr/sbin:/usr/bin:/sbin:/bin`
  const child = spawn(file, args, {
    cwd: isShutIn ? '/' : join(image.root, image.workdir),
    env: { PATH: path, ...image.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  const container = {
    process: child,
    stdout: '',
    stderr: '',
    log: [] as Record<string, unknown>[],
    hasExited: false,
    exited: once(child, 'close').then(([code, signal]) => {
      running.delete(child)
      container.hasExited = true
      return { code: code as number | null, signal: signal as NodeJS.Signals | null }
    }),
  }
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    container.stderr += chunk
  })
  createInterface({ input: child.stdout }).on('line', (line) => {
    container.stdout += `${line}\n`
    if (line.startsWith('{')) container.log.push(JSON.parse(line))
  })
  return container
}
