/**
 * Builds an image without a container daemon: the instructions of the Dockerfile run in a folder for each stage. The
 * base image is the Node of this machine with its npm. Instructions that only concern a container (labels, ports) are
 * recorded.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { exec, pairs, parseDockerfile, type Stage } from './dockerfile.ts'

export interface Image {
  /** The folder that is the root of the image. */
  readonly root: string
  readonly workdir: string
  readonly env: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly ports: readonly number[]
  readonly user: string
  readonly stopSignal: string
  readonly healthCheck: readonly string[]
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
}

/** A command of the build failed; `output` is the end of its output. */
export class BuildFailed extends Error {
  override readonly name = 'BuildFailed'
  readonly output: string

  constructor(command: string, output: string) {
    super(`${command}: ${output}`)
    this.output = output
  }

  /** The line of npm about an unreachable registry; undefined for another failure. */
  get whyOffline(): string | undefined {
    const codes = 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED'
    return new RegExp(`^npm error .*\\b(${codes})\\b.*$`, 'm').exec(this.output)?.[0]
  }
}

const KEPT_OUTPUT_CHARS = 4_000

/** Variables that commands of the build get: for programs, the registry and the package cache. */
const PASSED =
  /^(PATH|HOME|TMPDIR|HTTPS?_PROXY|NO_PROXY|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|npm_config_(registry|cache|cafile))$/i

/**
 * Builds the Dockerfile of a folder.
 * @param context the files that reach the builder
 * @param scratch an empty folder for the stages
 * @throws BuildFailed
 */
export async function buildImage(dockerfile: string, context: string, scratch: string): Promise<Image> {
  const stages = parseDockerfile(readFileSync(dockerfile, 'utf8'))
  let image: Image | undefined
  for (const [index, stage] of stages.entries()) {
    image = await buildStage(stage, join(scratch, stage.name ?? `stage-${index}`), (name) =>
      name === undefined ? context : join(scratch, name),
    )
  }
  return image!
}

async function buildStage(stage: Stage, root: string, sourceOf: (stage: string | undefined) => string): Promise<Image> {
  mkdirSync(root)
  const image = {
    root,
    workdir: '/',
    env: {} as Record<string, string>,
    labels: {} as Record<string, string>,
    ports: [] as number[],
    user: 'root',
    stopSignal: 'SIGTERM',
    healthCheck: [] as string[],
    entrypoint: [] as string[],
    command: [] as string[],
  }
  for (const { name, flags, text } of stage.instructions) {
    if (name === 'WORKDIR') {
      image.workdir = posix.resolve(image.workdir, text)
      mkdirSync(join(root, image.workdir), { recursive: true })
    } else if (name === 'COPY') copy(sourceOf(flags.from), text.split(/\s+/), root, image.workdir)
    else if (name === 'RUN') await run(text, join(root, image.workdir), image.env)
    else if (name === 'ENV') Object.assign(image.env, pairs(text))
    else if (name === 'LABEL') Object.assign(image.labels, pairs(text))
    else if (name === 'EXPOSE') image.ports.push(...text.split(/\s+/).map(Number))
    else if (name === 'USER') image.user = text
    else if (name === 'STOPSIGNAL') image.stopSignal = text
    else if (name === 'HEALTHCHECK') image.healthCheck = exec(text.replace(/^CMD\s+/, ''))
    else if (name === 'ENTRYPOINT') image.entrypoint = exec(text)
    else if (name === 'CMD') image.command = exec(text)
  }
  return image
}

/** Follows the rules of COPY: the content of a folder is copied, and several files need a folder as their target. */
function copy(from: string, words: readonly string[], root: string, workdir: string): void {
  const sources = words.slice(0, -1)
  const target = words.at(-1)!
  const to = join(root, posix.resolve(workdir, target))
  if (sources.length > 1 && !target.endsWith('/'))
    throw new Error(`several sources need a folder: COPY ${words.join(' ')}`)
  for (const source of sources) {
    const path = join(from, source)
    const isInto = !statSync(path).isDirectory() && target.endsWith('/')
    cpSync(path, isInto ? join(to, basename(path)) : to, { recursive: true, verbatimSymlinks: true })
  }
}

async function run(command: string, cwd: string, imageEnv: Readonly<Record<string, string>>): Promise<void> {
  const passed = Object.entries(process.env).filter(([name]) => PASSED.test(name))
  const env = { ...Object.fromEntries(passed), npm_config_prefer_offline: 'true', ...imageEnv }
  const child = spawn('/bin/sh', ['-c', command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk) => {
      output = (output + chunk).slice(-KEPT_OUTPUT_CHARS)
    })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new BuildFailed(command, output)
}
