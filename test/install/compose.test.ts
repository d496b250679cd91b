/** compose.yaml agrees with the code and the image, and every container in it is confined. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { configTable, loadConfig } from '../../lib/config/index.ts'
import { loadConfig as loadEdgeConfig } from '../../wrangler-free-deploy/edge/config.ts'
import { COMPOSE_FILE, composeVariables, readCompose, type Service } from './compose.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const EDGE = join(ROOT, 'wrangler-free-deploy/edge')
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')

const compose = readCompose()
const services = Object.entries(compose.services)
const { password, postgres, broker, edge } = compose.services as Record<
  'password' | 'postgres' | 'broker' | 'edge',
  Service
>
const brokerVariables = new Set([...configTable().matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!))

describe('every container', () => {
  for (const [name, service] of services) {
    test(`${name} has a read-only root, no capabilities and cannot gain any`, () => {
      assert.deepEqual(
        [service.read_only, service.cap_drop, service.security_opt],
        [true, ['ALL'], ['no-new-privileges:true']],
      )
    })

    test(`${name} uses an image with a version`, () => {
      assert.match(service.image, /^[a-z-]+:\d+\.\d+(\.\d+)?(-[a-z]+)?$/)
    })

    test(`${name} publishes ports only on the loopback address by default`, () => {
      for (const port of service.ports ?? []) assert.match(port, /^127\.0\.0\.1:\d+:\d+$/)
    })

    test(`${name} is ${service.restart === 'no' ? 'run once' : 'restarted, and has a health check'}`, () => {
      if (service.restart === 'no') return assert.equal(service.healthcheck, undefined)
      assert.equal(service.restart, 'unless-stopped')
      assert.equal(service.healthcheck!.test[0], 'CMD')
    })

    test(`${name} uses networks and volumes that exist, and waits for services to be healthy or complete`, () => {
      for (const network of service.networks ?? []) assert.ok(network in compose.networks, network)
      for (const volume of service.volumes ?? []) assert.ok(volume.split(':')[0]! in compose.volumes, volume)
      for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
        const isOnce = compose.services[other]!.restart === 'no'
        assert.equal(condition, isOnce ? 'service_completed_successfully' : 'service_healthy', other)
      }
    })
  }
})

test('only the container that makes the password runs as root, and it has no network', () => {
  const root = services.filter(([, { user }]) => user?.startsWith('0'))
  assert.deepEqual(
    root.map(([name, { network_mode }]) => [name, network_mode]),
    [['password', 'none']],
  )
  // The others run as the user of their image.
  assert.equal(postgres.user, '999:999')
  assert.deepEqual([broker.user, edge.user], [undefined, undefined])
})

test('services start in the order of their dependencies', () => {
  const order = (name: string): string[] =>
    Object.keys(compose.services[name]!.depends_on ?? {}).flatMap((one) => [...order(one), one])
  assert.deepEqual(order('edge'), ['password', 'postgres', 'broker'])
})

test('only the broker reaches the database', () => {
  assert.equal(compose.networks.database!.internal, true)
  const inside = services.filter(([, { networks }]) => networks?.includes('database')).map(([name]) => name)
  assert.deepEqual([postgres.networks, inside], [['database'], ['postgres', 'broker']])
  assert.equal(postgres.ports, undefined)
})

test('the data of PostgreSQL is in a volume, at the path of its image since release 18', () => {
  const [, major] = /^postgres:(\d+)\./.exec(postgres.image) ?? []
  assert.ok(Number(major) >= 18)
  assert.ok(postgres.volumes!.includes('postgres:/var/lib/postgresql'))
  // Its other writable folders, since its root is read-only.
  assert.deepEqual(postgres.tmpfs, ['/tmp', '/var/run/postgresql'])
})

test('broker and proxy use one image, of this version', () => {
  assert.equal(broker.image, `cluster-telemetry-broker:${version}`)
  assert.deepEqual([edge.image, edge.build, broker.build], [broker.image, broker.build, { context: '..' }])
  assert.equal(
    readCompose({ BROKER_IMAGE: 'registry.test/broker:1.2' }).services.edge!.image,
    'registry.test/broker:1.2',
  )
})

test('the broker knows every variable that is set for it', () => {
  for (const name of Object.keys(broker.environment!)) assert.ok(brokerVariables.has(name), name)
  const { database, listen, warnings, tokens } = loadConfig({ ...broker.environment, DATABASE_PASSWORD_FILE: '' })
  assert.deepEqual([database!.host, database!.user, database!.database], [['postgres'], 'broker', 'broker'])
  assert.deepEqual([warnings, tokens], [[], []])
  assert.ok(broker.ports!.every((port) => port.endsWith(`:${listen[0]!.port}`)))
  const { POSTGRES_USER, POSTGRES_DB } = postgres.environment!
  assert.deepEqual([database!.user, database!.database], [POSTGRES_USER, POSTGRES_DB])
})

test('the memory limit of the container is the one in the environment of the broker', () => {
  assert.equal(broker.mem_limit, '1g')
  assert.equal(broker.environment!.BROKER_MEMORY_LIMIT_MB, '1024')
})

test('the proxy knows every variable that is set for it', () => {
  const sources = readdirSync(EDGE)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(EDGE, name), 'utf8'))
    .join('')
  for (const name of Object.keys(edge.environment!)) assert.ok(sources.includes(`'${name}'`), name)
  assert.ok(existsSync(join(EDGE, 'server.ts')))
  assert.deepEqual(edge.command, ['dist/wrangler-free-deploy/edge/server.js'])
})

test('the proxy uses the address of the broker, and the health checks call /readyz where each program listens', () => {
  const { listen } = loadConfig({})
  assert.equal(edge.environment!.BROKER_URL, `http://broker:${listen[0]!.port}`)
  for (const { healthcheck } of [broker, edge])
    assert.deepEqual(healthcheck!.test, ['CMD', 'node', 'healthcheck.mjs', '/readyz'])
  const healthCheck = readFileSync(join(ROOT, 'wrangler-free-deploy/healthcheck.mjs'), 'utf8')
  const [, fallback] = /const DEFAULT_ADMIN_ADDR = '(.+)'/.exec(healthCheck)!
  for (const [{ environment }, { adminListen }] of [
    [broker, loadConfig({ ...broker.environment, DATABASE_PASSWORD_FILE: '' })],
    [edge, loadEdgeConfig({ ...edge.environment })],
  ] as const) {
    const { host, port } = adminListen[0]!
    assert.equal(`${host}:${port}`, environment!.ADMIN_ADDR ?? fallback)
  }
  assert.match(dockerfile, /^HEALTHCHECK .* CMD \["node", "healthcheck\.mjs"\]$/m)
})

test('broker and proxy have enough time to stop', () => {
  const grace = Number(
    /const SHUTDOWN_MS = (\d+)_000/.exec(readFileSync(join(ROOT, 'lib/process/run-server.ts'), 'utf8'))![1],
  )
  for (const { stop_grace_period } of [broker, edge]) assert.ok(Number.parseInt(stop_grace_period!, 10) > grace)
})

test('the file contains no secret, and each service gets only its own tokens', () => {
  for (const [name, { environment = {} }] of services)
    for (const [variable, value] of Object.entries(environment))
      if (/PASSWORD|TOKEN|SECRET/.test(variable))
        assert.ok(value === '' || value === null || value.startsWith('/secrets/'), `${name}: ${variable}`)
  const tokens = {
    BROKER_TOKEN_READ: 'read-1',
    BROKER_TOKEN_INGEST: 'ingest-1',
    BROKER_TOKEN_SUPPLYCHAIN: 'supplychain-1',
    BROKER_TOKEN_ADMIN: 'admin-1',
  }
  const told = readCompose(tokens)
  const given = (service: Service) =>
    Object.fromEntries(Object.entries(service.environment!).filter(([name]) => name.includes('TOKEN')))
  assert.deepEqual(given(told.services.broker!), tokens)
  assert.deepEqual(given(told.services.edge!), { BROKER_TOKEN_READ: 'read-1' })
})

test('every variable in the file is described in docs/install.md', () => {
  const text = readFileSync(join(ROOT, 'docs/install.md'), 'utf8')
  assert.ok(composeVariables().size >= 8)
  for (const name of composeVariables())
    assert.match(text, new RegExp(`^\\| .*\`${name}\`.* \\|$`, 'm'), `${COMPOSE_FILE} asks for ${name}`)
})

describe('the password', () => {
  /** Runs the script of the container with `folder` as its volume. */
  const make = (folder: string) => {
    const [script] = password.command!
    const [shell, ...options] = password.entrypoint!
    assert.ok(script!.includes('cd /secrets\n'))
    const { status, stderr } = spawnSync(shell!, [...options, script!.replace('/secrets', folder)], {
      encoding: 'utf8',
    })
    assert.deepEqual([status, stderr], [0, ''])
    return readFileSync(join(folder, 'postgres-password'), 'utf8')
  }

  test('is made once, is long and readable for all users of the volume, and is kept', (t) => {
    const [one, two] = [1, 2].map(() => {
      const folder = mkdtempSync(join(tmpdir(), 'broker-password-'))
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      return folder
    }) as [string, string]
    const made = make(one)
    assert.match(made, /^[0-9a-f]{48}$/)
    assert.equal(statSync(join(one, 'postgres-password')).mode & 0o777, 0o444)
    assert.deepEqual(readdirSync(one), ['postgres-password'])
    assert.equal(make(one), made)
    assert.notEqual(make(two), made)
  })

  test('is made again after an interrupted attempt', (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'broker-password-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'postgres-password.new'), 'half')
    writeFileSync(join(folder, 'postgres-password'), '')
    assert.match(make(folder), /^[0-9a-f]{48}$/)
  })

  test('is readable but not writable for the database and the broker', () => {
    assert.deepEqual(password.volumes, ['secrets:/secrets'])
    for (const service of [postgres, broker]) assert.ok(service.volumes!.includes('secrets:/secrets:ro'))
    assert.equal(postgres.environment!.POSTGRES_PASSWORD_FILE, broker.environment!.DATABASE_PASSWORD_FILE)
    assert.equal(edge.volumes, undefined)
  })
})
