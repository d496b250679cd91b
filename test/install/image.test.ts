/** Tests what the Dockerfile says, what its commands produce, and that the result runs like a container. */
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { before, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { jobs } from '../../jobs/index.ts'
import { configTable, loadConfig } from '../../lib/config/index.ts'
import { flow, get, post } from '../support/broker.ts'
import { onlyFull } from '../support/depth.ts'
import { startOwnServer } from '../support/own-server.ts'
import { becomes, until } from '../support/until.ts'
import { type Container, prepareRoot, runContainer, whyOpen } from './container.ts'
import { admits, copyContext } from './context.ts'
import { exec, pairs, parseDockerfile } from './dockerfile.ts'
import { BuildFailed, buildImage, type Image } from './image.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const EDGE = 'wrangler-free-deploy/edge'
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

const manifest = JSON.parse(read('package.json')) as {
  version: string
  description: string
  license: string
  engines: { node: string }
  scripts: { start: string }
  dependencies: Record<string, string>
}
const dockerfile = read('Dockerfile')
const stages = parseDockerfile(dockerfile)
const final = stages.at(-1)!
const all = (name: string) => final.instructions.filter((one) => one.name === name).map(({ text }) => text)
const only = (name: string) => {
  assert.equal(all(name).length, 1, `${name} once`)
  return all(name)[0]!
}

describe('the Dockerfile', () => {
  test('every stage begins with the same pinned image of a supported Node', () => {
    const [base, ...others] = new Set(stages.map((stage) => stage.base))
    assert.deepEqual(others, [])
    const [, major] = /^node:(\d+)\.\d+\.\d+-[a-z]+-slim$/.exec(base!) ?? []
    assert.ok(major, `${base} names no release`)
    assert.ok(Number(major) >= Number(/\d+/.exec(manifest.engines.node)))
    assert.ok(Number(major) < 24, 'keys may be misread: lib/process/escaped-keys.ts')
    const [another] = parseDockerfile(dockerfile, { NODE_IMAGE: 'registry.test/node@sha256:0' })
    assert.equal(another!.base, 'registry.test/node@sha256:0')
  })

  test('the last stage runs no command, so that it can be built for another architecture', () => {
    assert.deepEqual(all('RUN'), [])
    const platforms = dockerfile.match(/^FROM .*$/gm)!.map((line) => line.includes('--platform=$BUILDPLATFORM'))
    assert.deepEqual(platforms, [...stages.slice(1).map(() => true), false])
  })

  test('packages are installed before sources are copied, so that a change of the sources reuses them', () => {
    for (const { instructions } of stages.filter((stage) =>
      stage.instructions.some(({ text }) => text.startsWith('npm ci')),
    )) {
      const install = instructions.findIndex(({ text }) => text.startsWith('npm ci'))
      const copied = instructions.slice(0, install).filter(({ name }) => name === 'COPY')
      assert.deepEqual(
        copied.map(({ text }) => text),
        ['package.json package-lock.json ./'],
      )
    }
  })

  test('it runs as a numeric user that is not root, stops on SIGTERM, and starts without a shell', () => {
    assert.match(only('USER'), /^[1-9]\d*:[1-9]\d*$/)
    assert.equal(only('USER'), '1000:1000')
    assert.equal(only('STOPSIGNAL'), 'SIGTERM')
    for (const name of ['ENTRYPOINT', 'CMD']) assert.ok(exec(only(name)).length > 0)
    assert.ok(exec(only('HEALTHCHECK').replace(/^CMD /, '')).length > 0)
  })

  test('it starts the broker as `npm start` does', () => {
    const [, program] = manifest.scripts.start.split(' && ')
    const words = program!.replace('exec ', '').split(' ')
    const settings = words.filter((word) => /^[A-Z_]+=/.test(word))
    assert.deepEqual([...exec(only('ENTRYPOINT')), ...exec(only('CMD'))], words.slice(settings.length))
    const { NODE_ENV, ...env } = pairs(only('ENV'))
    assert.equal(NODE_ENV, 'production')
    assert.deepEqual(env, pairs(settings.join(' ')))
  })

  test('labels are those of the package, ports those of the configuration', () => {
    const label = 'org.opencontainers.image'
    const { version, description, license } = manifest
    assert.deepEqual(pairs(only('LABEL')), {
      [`${label}.title`]: 'cluster-telemetry-broker',
      [`${label}.description`]: description,
      [`${label}.licenses`]: license,
      [`${label}.version`]: version,
      [`${label}.revision`]: '',
      [`${label}.source`]: '',
    })
    const given = parseDockerfile(dockerfile, { VERSION: '9.9.9', REVISION: 'abc', SOURCE: 'https://example.test' }).at(
      -1,
    )!
    const labels = pairs(given.instructions.find(({ name }) => name === 'LABEL')!.text)
    assert.deepEqual(
      ['version', 'revision', 'source'].map((name) => labels[`${label}.${name}`]),
      ['9.9.9', 'abc', 'https://example.test'],
    )
    const { listen, adminListen } = loadConfig({})
    assert.equal(only('EXPOSE'), `${listen[0]!.port} ${adminListen[0]!.port}`)
  })

  test('the builder gets the sources, and no files that could be secret', () => {
    const isAdmitted = admits(read('.dockerignore'))
    for (const path of [
      'package.json',
      'package-lock.json',
      'scripts/build.mjs',
      'lib/server.ts',
      'sql/migrations/0001_pods.sql',
      'wrangler-free-deploy/console/index.html',
    ])
      assert.ok(isAdmitted(path), path)
    for (const path of [
      '.env',
      '.git/config',
      '.npmrc',
      '.data/postgres',
      'node_modules/zod',
      'dist/lib',
      'test/x.ts',
      'docs/install.md',
    ])
      assert.ok(!isAdmitted(path), path)
    for (const path of [
      'wrangler-free-deploy/.env',
      'wrangler-free-deploy/compose.yaml',
      'wrangler-free-deploy/chart/values.yaml',
    ])
      assert.ok(!isAdmitted(path), path)
  })
})

test('imports are found in each form', () => {
  assert.deepEqual(
    specifiersOf(`import a from 'a';\nexport { b } from "b"\nimport 'c';\nawait import('d')\nconst text = 'from e'\n`),
    ['a', 'b', 'c', 'd'],
  )
})

test('the parser reads known forms and refuses others', () => {
  const [one, two] = parseDockerfile(
    'ARG A=1\nFROM img:$A AS x\n# a comment\nRUN a && \\\n  b $HOME\nFROM y\nARG A\nENV B=$A C="d e"\n',
  )
  assert.deepEqual([one!.name, one!.base, one!.instructions[0]!.text], ['x', 'img:1', 'a && b $HOME'])
  assert.deepEqual(pairs(two!.instructions[0]!.text), { B: '1', C: 'd e' })
  for (const bad of [
    'ADD x /',
    'RUN --mount=type=cache x',
    'COPY --chown=1 a b',
    'ENV A=$UNKNOWN',
    'SHELL ["sh"]',
    'run x',
  ])
    assert.throws(() => parseDockerfile(`FROM x\n${bad}\n`), /not understood|unknown flag|no argument/, bad)
  assert.throws(() => parseDockerfile('RUN x\n'), /before the first FROM/)
  assert.throws(() => exec('"node"'))
  assert.throws(() => pairs('A=1 B'))
  assert.throws(() => admits('*.log'), /not understood/)
})

const BUILD_LIMIT_MS = 900_000
/** Threads need it only when they run from sources; the image has none, and a test shows that it works without. */
const LOADER_OF_SOURCES = 'tsx/esm/api'

describe('the image', { timeout: BUILD_LIMIT_MS, skip: onlyFull }, () => {
  let image: Image
  /** The reason why there is no image. */
  let missing: string | undefined
  let app: string
  let databaseUrl: string

  before(async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'broker-image-'))
    chmodSync(scratch, 0o711)
    process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
    const context = join(scratch, 'context')
    mkdirSync(context)
    copyContext(ROOT, context)
    for (const path of entries(context)) chmodSync(path, lstatSync(path).isDirectory() ? 0o700 : 0o600) // as with umask 077
    mkdirSync(join(scratch, 'stages'))
    chmodSync(join(scratch, 'stages'), 0o711)
    try {
      image = await buildImage(join(ROOT, 'Dockerfile'), context, join(scratch, 'stages'))
    } catch (error) {
      if (!(error instanceof BuildFailed) || error.whyOffline === undefined) throw error
      missing = `the package registry is out of reach: ${error.whyOffline}`
      return
    }
    app = join(image.root, image.workdir)
    prepareRoot(image)
    const { port } = await startOwnServer({})
    databaseUrl = `postgres://app:secret@127.0.0.1:${port}/app`
  })

  /** A test of the built image, which is skipped when the registry is unreachable. */
  const built = (name: string, what: (t: TestContext) => Promise<void> | void) =>
    test(name, (t) => (missing ? t.skip(missing) : what(t)))

  /** Starts the server of the image on free ports; it ends with the test. */
  async function startServer(t: TestContext, env: Record<string, string> = {}) {
    const container = runContainer(image, [...image.entrypoint, ...image.command], {
      LISTEN_ADDR: '127.0.0.1:0',
      ADMIN_ADDR: '127.0.0.1:0',
      DATABASE_URL: databaseUrl,
      ...env,
    })
    t.after(async () => {
      container.process.kill('SIGKILL')
      await container.exited
    })
    return listening(container)
  }
  const once = async (words: readonly string[], env: Record<string, string> = {}) => {
    const container = runContainer(image, words, env)
    return { ...(await container.exited), container }
  }
  const program = (...words: string[]) => [...image.entrypoint, ...words]

  built(
    'it contains the licence, the built code and its production dependencies, readable and not writable for others',
    (t) => {
      assert.deepEqual(readdirSync(app).sort(), ['LICENSE', 'dist', 'healthcheck.mjs', 'node_modules', 'package.json'])
      for (const path of entries(app)) {
        const stat = lstatSync(path)
        if (stat.isSymbolicLink()) continue
        const needed = stat.isDirectory() ? 0o005 : 0o004
        assert.equal(stat.mode & (needed | 0o022), needed, `${relative(app, path)} has mode ${stat.mode.toString(8)}`)
      }
      const mib = (path: string) =>
        (entries(path).reduce((sum, one) => sum + lstatSync(one).size, 0) / 1024 / 1024).toFixed(1)
      t.diagnostic(
        `MiB: dependencies ${mib(join(app, 'node_modules'))}, dist ${mib(join(app, 'dist'))}, all of it ${mib(app)}`,
      )
    },
  )

  built('every sql file of the sources is in it', () => {
    const sqlFiles = (folder: string) => readdirSync(folder, { recursive: true }).sort()
    for (const folder of ['sql/migrations', 'sql/functions'])
      assert.deepEqual(sqlFiles(join(app, 'dist', folder)), sqlFiles(join(ROOT, folder)))
  })

  built('no package in it is native, has an install script, or is bound to a platform', () => {
    const packages = installed(join(app, 'node_modules'))
    assert.ok(packages.length >= Object.keys(manifest.dependencies).length)
    for (const { name, folder, json } of packages) {
      const scripts = Object.keys(json.scripts ?? {}).filter((script) => /^(pre|post)?install$/.test(script))
      assert.deepEqual(scripts, [], `${name} runs a script when it is installed`)
      assert.deepEqual(
        [json.os, json.cpu, json.libc],
        [undefined, undefined, undefined],
        `${name} is bound to a platform`,
      )
      assert.ok(!existsSync(join(folder, 'binding.gyp')), `${name} is compiled when it is installed`)
    }
    const natives = entries(join(app, 'node_modules')).filter((path) => /\.(node|so|dylib|dll|wasm)$/.test(path))
    assert.deepEqual(
      natives.map((path) => relative(app, path)),
      [],
    )
  })

  built('it has neither the embedded server nor development packages', () => {
    const locked = JSON.parse(read('package-lock.json')).packages as Record<
      string,
      { dev?: boolean; optional?: boolean; devOptional?: boolean }
    >
    const wanted = Object.entries(locked).filter(
      ([path, one]) => path !== '' && !one.dev && !one.optional && !one.devOptional,
    )
    assert.deepEqual(
      installed(join(app, 'node_modules'))
        .map(({ folder }) => relative(app, folder))
        .sort(),
      wanted.map(([path]) => path).sort(),
    )
  })

  built('it contains the SBOM of exactly these packages, and the licence texts of each', () => {
    const { components } = JSON.parse(readFileSync(join(app, 'dist/sbom.cdx.json'), 'utf8')) as {
      components: { group?: string; name: string; version: string }[]
    }
    const folders = new Map(
      installed(join(app, 'node_modules')).map(({ name, folder, json }) => [
        `${json.name ?? name} ${json.version}`,
        folder,
      ]),
    )
    const listed = components.map(
      ({ group, name, version }) => `${group === undefined ? '' : `${group}/`}${name} ${version}`,
    )
    assert.deepEqual(listed.sort(), [...folders.keys()].sort())
    const licences = readFileSync(join(app, 'dist/THIRD_PARTY_LICENCES.txt'), 'utf8').split(`\n${'-'.repeat(80)}\n\n`)
    for (const [one, folder] of folders) {
      const entry = licences.find((text) => text.startsWith(`${one} (`))
      assert.ok(entry, one)
      const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice)/i.test(file))
      for (const file of files)
        assert.ok(entry.includes(readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim()), one)
      if (files.length === 0) assert.match(entry, /it states: \S+\.\n$/, one)
    }
  })

  built('its code imports only built-in modules, dependencies and its own files', () => {
    const files = entries(join(app, 'dist')).filter((path) => path.endsWith('.js'))
    assert.ok(files.length > 100)
    for (const path of files)
      for (const specifier of specifiersOf(readFileSync(path, 'utf8'))) {
        const name = specifier
          .split('/')
          .slice(0, specifier.startsWith('@') ? 2 : 1)
          .join('/')
        if (specifier.startsWith('.'))
          assert.ok(existsSync(join(path, '..', specifier)), `${relative(app, path)}: ${specifier}`)
        else if (specifier !== LOADER_OF_SOURCES)
          assert.ok(
            isBuiltin(specifier) || name in manifest.dependencies,
            `${relative(app, path)} imports ${specifier}`,
          )
      }
  })

  built('it runs as its user, without capabilities, on a read-only root', async (t) => {
    const reason = whyOpen()
    if (reason) return t.skip(reason)
    const look = `
      const fs = require('node:fs')
      const refused = (path) => { try { fs.writeFileSync(path, ''); return 'written' } catch (error) { return error.code } }
      const status = fs.readFileSync('/proc/self/status', 'utf8')
      console.log(JSON.stringify({
        ids: [process.getuid(), process.getgid(), process.getgroups()],
        capabilities: [/CapEff:\\t(\\w+)/, /CapBnd:\\t(\\w+)/].map((field) => parseInt(field.exec(status)[1], 16)),
        cwd: process.cwd(),
        writes: ['/x', '/app/x', '/app/dist/x', '/app/node_modules/x', '/tmp/x'].map(refused),
      }))`
    const { code, container } = await once(['node', '-e', look])
    assert.deepEqual([code, container.stderr], [0, ''])
    assert.deepEqual(container.log[0], {
      ids: [1000, 1000, [1000]],
      capabilities: [0, 0],
      cwd: '/app',
      writes: ['EROFS', 'EROFS', 'EROFS', 'EROFS', 'ENOENT'],
    })
  })

  built('without a database it prints one line and exits with 1', async () => {
    const { code, container } = await once(program(...image.command))
    assert.deepEqual(
      [code, container.stdout, container.stderr],
      [1, '', 'DATABASE_URL or PGHOST is required in production\n'],
    )
  })

  built('the server migrates, answers, passes the health check, and exits with 0 on its stop signal', async (t) => {
    const { container, api, admin } = await startServer(t)
    await until('it is ready', async () => (await get(`${admin}/readyz`)).status === 200)
    await becomes(async () => (await get(`${api}/health`)).text, 'Healthy!')
    assert.equal((await post(`${api}/pod/traffic/batch`, [flow(1), flow(2)])).text, '2')
    assert.equal((await get(`${api}/pod/traffic`)).json.length, 2)

    const ADMIN_ADDR = new URL(admin).host
    const checks = [image.healthCheck, [...image.healthCheck, '/readyz']]
    for (const words of checks) {
      const { code, container: check } = await once(words, { ADMIN_ADDR })
      assert.deepEqual([code, check.stderr], [0, ''], check.stdout)
    }
    const unknown = await once([...image.healthCheck, '/nowhere'], { ADMIN_ADDR })
    assert.deepEqual([unknown.code, unknown.container.stdout], [1, `${ADMIN_ADDR}/nowhere: 404\n`])

    container.process.kill(image.stopSignal as NodeJS.Signals)
    assert.deepEqual(await container.exited, { code: 0, signal: null })
    assert.equal(container.stderr, '')
    for (const words of checks) {
      const { code, container: check } = await once(words, { ADMIN_ADDR })
      assert.equal(code, 1)
      assert.match(check.stdout, /ECONNREFUSED/)
    }
  })

  built('findings are read in a thread without any file outside the image', async (t) => {
    const token = 'supply-chain-token-of-the-image'
    const { api } = await startServer(t, { BROKER_TOKEN_SUPPLYCHAIN: token })
    const digest = `sha256:${'0'.repeat(64)}`
    const report = {
      schema_version: 1,
      source: 'operator-scanner',
      image: { digest },
      scanned_at: '2026-01-01T00:00:00Z',
    }
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const answer = await post(`${api}/images/${digest}/vulnerabilities`, report, { headers })
    assert.deepEqual([answer.status, answer.json], [200, { status: 'stored', items: 0 }])
  })

  built('the health check uses the configured admin address, or its default', async () => {
    const asked = async (env: Record<string, string>) =>
      (await once(image.healthCheck, env)).container.stdout.split('/livez')[0]
    const [{ host, port }] = loadConfig({}).adminListen as [{ host: string; port: number }]
    assert.equal(await asked({}), `${host}:${port}`)
    assert.equal(await asked({ ADMIN_ADDR: ' ' }), `${host}:${port}`)
    assert.equal(await asked({ ADMIN_ADDR: '[::1]:1' }), '[::1]:1')
    assert.equal(await asked({ ADMIN_ADDR: '0.0.0.0:1' }), '0.0.0.0:1')
  })

  built('the health check reaches a server that listens on all addresses', async (t) => {
    const { container, admin } = await startServer(t, { ADMIN_ADDR: '0.0.0.0:0' })
    const { code, container: check } = await once(image.healthCheck, { ADMIN_ADDR: new URL(admin).host })
    assert.equal(code, 0, check.stdout)
    container.process.kill('SIGKILL')
  })

  built('a server that does not answer is unhealthy', async (t) => {
    const { container, admin } = await startServer(t)
    container.process.kill('SIGSTOP')
    const { code, container: check } = await once(image.healthCheck, { ADMIN_ADDR: new URL(admin).host })
    container.process.kill('SIGCONT')
    assert.equal(code, 1)
    assert.match(check.stdout, /no answer within/)
  })

  built('the migration and a pass of every job exit with 0', async () => {
    const migration = await once(program('dist/sql/migrate.js'), { DATABASE_URL: databaseUrl })
    assert.equal(migration.code, 0, migration.container.stdout)
    for (const { name } of jobs) {
      const { code, container } = await once(program('dist/jobs/run.js', name), { DATABASE_URL: databaseUrl })
      assert.deepEqual([code, container.stderr], [0, ''], `${name}: ${container.stdout}`)
    }
    assert.equal((await once(program('dist/jobs/run.js', 'no-such-job'), { DATABASE_URL: databaseUrl })).code, 1)
  })

  built('the edge proxy reads from the broker with its token', async (t) => {
    const broker = await startServer(t, { BROKER_TOKEN_READ: 'read-token-for-the-edge' })
    const container = runContainer(image, program(`dist/${EDGE}/server.js`), {
      LISTEN_ADDR: '127.0.0.1:0',
      ADMIN_ADDR: '127.0.0.1:0',
      BROKER_URL: broker.api,
      BROKER_TOKEN_READ: 'read-token-for-the-edge',
    })
    t.after(async () => {
      container.process.kill('SIGKILL')
      await container.exited
    })
    const edge = await listening(container)
    assert.equal((await get(`${broker.api}/pod/info`)).status, 401)
    assert.deepEqual(
      [(await get(`${edge.api}/api/pod/info`)).status, (await post(`${edge.api}/api/pod/traffic/batch`, [])).status],
      [200, 405],
    )
    const { code, container: check } = await once(image.healthCheck, { ADMIN_ADDR: new URL(edge.admin).host })
    assert.equal(code, 0, check.stdout)
    container.process.kill(image.stopSignal as NodeJS.Signals)
    assert.deepEqual(await container.exited, { code: 0, signal: null })
  })

  built('the console is in it, which the edge proxy serves if told to, and the broker only then', async (t) => {
    const broker = await startServer(t)
    assert.equal((await get(`${broker.api}/console/`)).status, 404)
    const told = await startServer(t, { CONSOLE: 'true' })
    const container = runContainer(image, program(`dist/${EDGE}/server.js`), {
      LISTEN_ADDR: '127.0.0.1:0',
      ADMIN_ADDR: '127.0.0.1:0',
      BROKER_URL: broker.api,
      CONSOLE: 'true',
    })
    t.after(async () => {
      container.process.kill('SIGKILL')
      await container.exited
    })
    const edge = await listening(container)
    for (const [url, source] of [
      [`${told.api}/console/`, 'none'],
      [`${edge.api}/`, 'proxy'],
    ] as const) {
      const { status, text } = await get(url)
      assert.equal(status, 200)
      assert.match(text, new RegExp(`<meta name="console-token" content="${source}"`))
      const [, script] = /<script [^>]*src="([^"]+)"/.exec(text)!
      assert.equal((await get(new URL(script!, url).href)).status, 200)
    }
  })

  built('the command line is in it', async () => {
    const { code, container } = await once(program('dist/ctb.mjs', 'version'))
    assert.deepEqual([code, container.stdout, container.stderr], [0, `${manifest.version}\n`, ''])
  })

  test('the broker knows the environment of the image, except variables of Node and the C library', () => {
    const known = [...configTable().matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
    for (const name of Object.keys(pairs(only('ENV')))) assert.ok([...known, 'MALLOC_ARENA_MAX'].includes(name), name)
  })
})

/** Where a server listens, once it does: broker or edge proxy. */
async function listening(container: Container): Promise<{ container: Container; api: string; admin: string }> {
  const line = await until(
    'it listens',
    () => container.log.find(({ msg }) => msg === 'listening') ?? container.hasExited,
  )
  if (line === true) assert.fail(`it ended: ${container.stdout}${container.stderr}`)
  return { container, api: String(line.api ?? line.edge), admin: String(line.admin) }
}

/** The imports of a module, in the forms that the compiler writes. */
function specifiersOf(code: string): string[] {
  const forms = /\bfrom\s+['"]([^'"]+)['"];?$|^import\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm
  return [...code.matchAll(forms)].map(([, from, bare, called]) => from ?? bare ?? called!)
}

/** Every file, link and folder below a folder. */
function entries(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? [path, ...entries(path)] : [path]
  })
}

interface Manifest {
  name?: string
  version?: string
  scripts?: Record<string, string>
  os?: string[]
  cpu?: string[]
  libc?: string[]
}

/** The packages below `node_modules`, nested ones too. */
function installed(folder: string): { name: string; folder: string; json: Manifest }[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    if (name.startsWith('.') || !statSync(path).isDirectory()) return []
    if (name.startsWith('@')) return installed(path)
    const json = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as Manifest
    return [{ name, folder: path, json }, ...installed(join(path, 'node_modules'))]
  })
}
