/** Broker (with authentication) and edge proxy as processes. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { TOKENS } from '../support/app.ts'
import { type Broker, flow, get, post, request, startBroker } from '../support/broker.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { freePort } from '../support/free-port.ts'
import { certificate } from '../support/own-server.ts'
import { undisturbed } from '../support/undisturbed.ts'
import { until } from '../support/until.ts'
import { type EdgeProcess, launchEdge, spawnEdge, startUpstream, Wire } from './support.ts'

const FLOWS = 500
const EXPORT = '/seccomp/profiles/shop/Deployment/web/export'

const folder = mkdtempSync(join(tmpdir(), 'edge-process-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const tokenFile = join(folder, 'read')
writeFileSync(tokenFile, `${TOKENS.BROKER_TOKEN_READ}\n`)

describe('in front of a broker that requires tokens', { timeout: 900_000 }, () => {
  let database: TestDatabase
  let broker: Broker
  let edge: EdgeProcess

  before(async () => {
    database = await createTestDatabase()
    // A fixed port, since the broker that replaces it must listen on the same one.
    broker = await startBroker({
      databaseUrl: database.url,
      env: { ...TOKENS, LISTEN_ADDR: `127.0.0.1:${await freePort()}` },
    })
    edge = await spawnEdge({ BROKER_URL: broker.url, BROKER_TOKEN_READ_FILE: tokenFile })
    const flows = Array.from({ length: FLOWS }, (_, i) => flow(i + 1))
    const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` }
    assert.equal((await post(`${broker.url}/pod/traffic/batch`, flows, { headers })).json, FLOWS)
  })

  test('clients read without a token or with any other token', async () => {
    for (const headers of [
      {},
      { authorization: 'Bearer of-somebody' },
      { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` },
    ]) {
      assert.equal((await get(`${broker.url}/version`)).status, 401)
      const { status, json } = await get(`${edge.url}/api/version`, { headers })
      assert.deepEqual([status, typeof json.broker], [200, 'string'])
    }
  })

  test('an answer equals that of the broker, plain or compressed', async () => {
    const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }
    for (const path of [
      '/pod/traffic?limit=500',
      '/pod/traffic/web-0',
      '/pod/info',
      '/svc/info',
      '/openapi.json',
      '/node/status',
    ]) {
      for (const coding of ['identity', 'gzip']) {
        const direct = await get(broker.url + path, { headers: { ...headers, 'accept-encoding': coding } })
        const through = await get(`${edge.url}/api${path}`, { headers: { 'accept-encoding': coding } })
        assert.equal(through.status, 200, path)
        assert.equal(through.text, direct.text, path)
        const told = ({ headers }: typeof direct) =>
          ['content-type', 'content-encoding', 'vary'].map((name) => headers[name])
        assert.deepEqual(told(through), told(direct), path)
      }
    }
    assert.equal((await get(`${edge.url}/api/pod/traffic?limit=500`)).json.length, FLOWS)
  })

  test('HEAD has the Content-Length of GET', async () => {
    const { headers, text } = await request(`${edge.url}/pod/info`, { method: 'HEAD' })
    assert.equal(text, '')
    assert.equal(headers['content-length'], String((await get(`${edge.url}/pod/info`)).text.length))
  })

  test('refusals of the broker are returned: 404, 400, and 404 for the export of an unknown workload', async () => {
    assert.deepEqual(
      await Promise.all([get(`${edge.url}/api/pod/name/nobody`), get(`${edge.url}/api/audit/verdicts?limit=x`)]).then(
        (answers) => answers.map(({ status, text }) => [status, text.slice(0, 23)]),
      ),
      [
        [404, 'No data found'],
        [400, 'Query deserialize error'],
      ],
    )
    assert.equal((await post(`${edge.url}/api${EXPORT}`, {})).status, 404)
  })

  test('the export of a profile passes with edits, headers and refusals, with or without a body', async () => {
    const [namespace, kind, name] = ['edge', 'Deployment', 'web']
    await database.adminSql`
      insert into workload_syscalls values (${namespace}, ${kind}, ${name}, 'read,write', '{x86_64}', '0123456789abcdef', 2, now())`
    const path = `/seccomp/profiles/${namespace}/${kind}/${name}/export`
    const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }
    const direct = await get(broker.url + path, { headers })
    const told = ({ headers }: typeof direct) =>
      ['content-type', 'x-kguardian-capture-level', 'x-kguardian-capture-complete'].map((name) => headers[name])
    assert.deepEqual(told(direct), ['application/yaml', 'unknown', 'false'])
    for (const through of [
      await get(`${edge.url}/api${path}`),
      await post(`${edge.url}/api${path}`, {}),
      await request(`${edge.url}/api${path}`, { method: 'POST' }),
    ])
      assert.deepEqual([through.status, through.text, told(through)], [200, direct.text, told(direct)])
    const edited = await post(`${edge.url}/api${path}`, { format: 'json', remove: ['write'] })
    assert.deepEqual(edited.json.spec.syscalls[0].names, ['read'])
    const refused = await post(`${edge.url}/api${path}`, { defaultAction: 'SCMP_ACT_KILL' })
    assert.deepEqual([refused.status, told(refused)], [409, ['text/plain; charset=utf-8', 'unknown', 'false']])
  })

  test('writes are 405 and store nothing', async () => {
    const count = () => database.adminSql`select count(*)::int as n from traffic`.then(([row]) => row!.n)
    for (const path of ['/pod/traffic', '/api/pod/traffic', '/pod/traffic/batch', '/api/pod/spec'])
      assert.equal(
        (
          await post(edge.url + path, flow(FLOWS + 1), {
            headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_INGEST}` },
          })
        ).status,
        405,
      )
    assert.equal(await count(), FLOWS)
  })

  test('a request has one id in both logs, and neither log holds a token or a query', async () => {
    const id = 'one-request-for-both-logs'
    const seen = broker.statuses.get(200) ?? 0
    const { headers } = await get(`${edge.url}/api/pod/traffic?limit=1&hidden-word=1`, {
      headers: { 'x-request-id': id, authorization: 'Bearer hidden-word' },
    })
    assert.equal(headers['x-request-id'], id)
    await until('the broker has logged it', () => (broker.statuses.get(200) ?? 0) > seen)
    const line = await until('the edge has logged it', () => edge.log.find(({ requestId }) => requestId === id))
    assert.deepEqual([line.method, line.status, line.msg], ['GET', 200, 'request'])
    assert.ok(Number(line.bytes) > 0)
    const text = JSON.stringify(edge.log)
    for (const word of ['hidden-word', TOKENS.BROKER_TOKEN_READ]) assert.ok(!text.includes(word))
    assert.ok(text.includes('BROKER_TOKEN_READ_FILE'))
  })

  test('the admin port serves /livez, /readyz and /metrics', async () => {
    assert.deepEqual(
      await Promise.all(['/livez', '/readyz'].map(async (path) => (await get(edge.admin + path)).text)),
      ['ok', 'ok'],
    )
    const { text, headers } = await get(`${edge.admin}/metrics`)
    assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
    assert.match(text, /^edge_http_requests_total\{method="GET",status="2xx"\} [1-9]/m)
    assert.match(text, /^edge_http_requests_in_flight 0$/m)
    assert.match(text, /^edge_http_request_duration_seconds_count\{method="GET"\} [1-9]/m)
    assert.match(text, /^nodejs_eventloop_lag_p99_seconds /m)
    assert.ok(!/web-0|\/pod/.test(text))
  })

  test('while the broker is gone, requests are 502; when it is back, they succeed', async () => {
    const { port } = broker
    broker.kill()
    await broker.exited
    const { status, text } = await get(`${edge.url}/api/version`)
    assert.deepEqual([status, text], [502, 'the broker cannot be reached'])
    assert.equal((await get(`${edge.admin}/readyz`)).status, 200)
    await startBroker({ databaseUrl: database.url, env: { ...TOKENS, LISTEN_ADDR: `127.0.0.1:${port}` } })
    assert.equal((await get(`${edge.url}/api/version`)).status, 200)
  })
})

describe('the start', { timeout: 900_000 }, () => {
  async function refusal(env: NodeJS.ProcessEnv): Promise<string> {
    const edge = launchEdge(env)
    assert.deepEqual(await edge.exited, { code: 1, signal: null })
    return edge.output
  }

  test('is refused without the address of the broker, with one line', async () => {
    assert.equal(await refusal({ BROKER_URL: '' }), 'BROKER_URL is required\n')
  })

  test('is refused with the shared token, unless it is allowed', async () => {
    const env = { BROKER_URL: 'http://127.0.0.1:1', BROKER_AUTH_TOKEN: TOKENS.BROKER_AUTH_TOKEN }
    const output = await refusal(env)
    assert.match(output, /^BROKER_AUTH_TOKEN: .*ALLOW_SHARED_TOKEN=true\n$/)
    assert.ok(!output.includes(TOKENS.BROKER_AUTH_TOKEN))
    const allowed = await spawnEdge({ ...env, ALLOW_SHARED_TOKEN: 'true' })
    assert.equal((await get(`${allowed.url}/healthz`)).status, 200)
    allowed.kill()
  })

  test('fails with 1 when the port is taken', async () => {
    const taken = await startUpstream()
    const edge = launchEdge({ BROKER_URL: taken.url, LISTEN_ADDR: `127.0.0.1:${taken.port}` })
    assert.deepEqual(await edge.exited, { code: 1, signal: null })
    assert.match(
      String(edge.log.at(-1)!.msg),
      /^LISTEN_ADDR: 127\.0\.0\.1:\d+ cannot be used \(EADDRINUSE\): another program listens there/,
    )
  })
})

describe('the way to the broker', { timeout: 900_000 }, () => {
  test('uses TLS for an https address, and only with a certificate of a known authority', async (t) => {
    const options = { key: readFileSync(certificate('server.key')), cert: readFileSync(certificate('server.crt')) }
    const heard: (string | undefined)[] = []
    const server = https.createServer(options, ({ headers }, outgoing) => {
      heard.push(headers.authorization)
      outgoing.end('[]')
    })
    server.listen(0, 'localhost')
    await once(server, 'listening')
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    const env = {
      BROKER_URL: `https://localhost:${(server.address() as AddressInfo).port}`,
      BROKER_TOKEN_READ: TOKENS.BROKER_TOKEN_READ,
    }
    const [known, unknown] = await Promise.all([
      spawnEdge({ ...env, NODE_EXTRA_CA_CERTS: certificate('ca.crt') }),
      spawnEdge(env),
    ])
    for (let i = 0; i < 3; i++) assert.equal((await get(`${known.url}/pod/info`)).text, '[]')
    assert.equal((await get(`${unknown.url}/pod/info`)).status, 502)
    assert.deepEqual(
      heard,
      Array.from({ length: 3 }, () => `Bearer ${TOKENS.BROKER_TOKEN_READ}`),
    )
    for (const edge of [known, unknown]) edge.kill()
  })

  test('uses IPv6 for an IPv6 address', async (t) => {
    const server = http.createServer((incoming, outgoing) => void outgoing.end(incoming.headers.host))
    const isThere = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(0, '::1', () => resolve(true))
    })
    if (!isThere) return t.skip('this machine has no IPv6')
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    const host = `[::1]:${(server.address() as AddressInfo).port}`
    const edge = await spawnEdge({ BROKER_URL: `http://${host}` })
    assert.equal((await get(`${edge.url}/pod/info`)).text, host)
    edge.kill()
  })
})

describe('SIGTERM', { timeout: 900_000 }, () => {
  const isRefused = (port: number) =>
    new Promise<boolean>((resolve) => {
      const socket = net.connect({ host: '127.0.0.1', port })
      socket.on('connect', () => {
        socket.destroy()
        resolve(false)
      })
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
    })
  const stoppingMs = ({ log }: EdgeProcess) => {
    const at = (message: string) => Date.parse(String(log.find(({ msg }) => msg === message)?.time))
    return at('stopped') - at('stopping')
  }

  /** A proxy with a list under way, whose second half is sent after `go`. */
  async function busy(t: TestContext, env: NodeJS.ProcessEnv = {}) {
    let go = () => {}
    const released = new Promise<void>((resolve) => {
      go = resolve
    })
    const upstream = await startUpstream(async (incoming, outgoing) => {
      if (incoming.url !== '/list') return void outgoing.end('[]')
      outgoing.write('[1,')
      await released
      outgoing.end('2]')
    })
    const edge = await spawnEdge({ BROKER_URL: upstream.url, ...env })
    t.after(() => edge.kill())
    const list = new Wire(edge.port)
    list.socket.write('GET /list HTTP/1.1\r\nHost: x\r\n\r\n')
    await list.sees(/\[1,/)
    const idle = new Wire(edge.port)
    idle.socket.write('GET /idle HTTP/1.1\r\nHost: x\r\n\r\n')
    await idle.sees(/\[\]$/)
    return { edge, list, idle, go }
  }

  test('lets an answer under way finish, refuses new connections, and ends with 0', async (t) => {
    const { edge, list, idle, go } = await busy(t)
    edge.kill('SIGTERM')
    await until('the edge is not ready', async () => (await get(`${edge.admin}/readyz`)).text === 'draining')
    await until('new connections are refused', () => isRefused(edge.port))
    await until('the idle connection is ended', () => idle.isClosed)
    assert.equal((await get(`${edge.admin}/livez`)).status, 200)
    assert.equal(edge.hasExited, false)
    go()
    await list.sees(/2\]\r\n0\r\n\r\n$/)
    assert.deepEqual(await edge.exited, { code: 0, signal: null })
    assert.equal(edge.output, '')
    assert.ok(stoppingMs(edge) < 12_000)
  })

  async function answersInProduction(t: TestContext): Promise<void> {
    const { edge, list, go } = await busy(t, { NODE_ENV: 'production' })
    edge.kill('SIGTERM')
    await until('the edge is not ready', async () => (await get(`${edge.admin}/readyz`)).status === 503)
    const agent = new http.Agent({ keepAlive: true })
    const answers = new Set<string>()
    await until('requests are refused', () =>
      get(`${edge.url}/pod/info`, { agent }).then(
        ({ status, headers }) => void answers.add(`${status} ${headers.connection}`),
        ({ code }) => code === 'ECONNREFUSED',
      ),
    )
    assert.deepEqual([...answers], ['200 close'])
    assert.equal(edge.hasExited, false)
    go()
    await list.sees(/2\]\r\n0\r\n\r\n$/)
    assert.deepEqual(await edge.exited, { code: 0, signal: null })
    const ms = stoppingMs(edge)
    assert.ok(ms >= 3_000 && ms < 20_000, `${ms} ms`)
  }
  test('in production the proxy answers requests for 3 seconds after the signal, then refuses them and stops', (t) =>
    undisturbed(() => answersInProduction(t)))

  test('an answer without an end is cut without its last chunk, and the process ends with 0', async (t) => {
    const { edge, list } = await busy(t)
    edge.kill('SIGTERM')
    assert.deepEqual(await edge.exited, { code: 0, signal: null })
    await until('the connection has ended', () => list.isClosed)
    assert.ok(!/0\r\n\r\n$/.test(list.received))
    assert.ok(stoppingMs(edge) < 20_000)
  })

  test('a second signal ends the process at once', async (t) => {
    const { edge } = await busy(t)
    edge.kill('SIGTERM')
    await until('the edge is not ready', async () => (await get(`${edge.admin}/readyz`)).status === 503)
    edge.kill('SIGINT')
    assert.deepEqual(await edge.exited, { code: 1, signal: null })
  })
})
