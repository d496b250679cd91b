// Authentication: tokens, scopes, and the answers 404, 401 and 403.

import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'

const TOKENS = {
  read: 'tok-read-5b1c0f9a7e21',
  ingest: 'tok-ingest-c2d84e6f0b35',
  supplychain: 'tok-supply-90ad3f7712ce',
  legacy: 'tok-legacy-e4471b8d6a0f',
}
const VARIABLES = {
  read: 'BROKER_TOKEN_READ',
  ingest: 'BROKER_TOKEN_INGEST',
  supplychain: 'BROKER_TOKEN_SUPPLYCHAIN',
  legacy: 'BROKER_AUTH_TOKEN',
}
const GRANTS = {
  read: ['read'],
  ingest: ['ingest', 'read'],
  supplychain: ['supplychain', 'read'],
  legacy: ['read', 'ingest'],
}
const ALL_TOKENS = Object.fromEntries(Object.entries(VARIABLES).map(([name, variable]) => [variable, TOKENS[name]]))

const DIGEST = `sha256:${'ab'.repeat(32)}`

// Every route of the three spec documents: method, path, scope, and for a write some JSON body.
const ROUTES = [
  // core telemetry
  ['POST', '/pod/spec', 'ingest', {}],
  ['POST', '/pod/mark_dead', 'ingest', {}],
  ['GET', '/pod/info', 'read'],
  ['GET', '/pod/namespaces', 'read'],
  ['GET', '/pod/name/web-0', 'read'],
  ['GET', '/pod/ip/10.7.0.1', 'read'],
  ['GET', '/pod/list/node-a', 'read'],
  ['POST', '/pod/traffic', 'ingest', {}],
  ['POST', '/pod/traffic/batch', 'ingest', []],
  ['GET', '/pod/traffic', 'read'],
  ['GET', '/pod/traffic/web-0', 'read'],
  ['POST', '/svc/spec', 'ingest', {}],
  ['GET', '/svc/info', 'read'],
  ['GET', '/svc/ip/10.96.0.1', 'read'],
  ['POST', '/pod/syscalls', 'ingest', []],
  ['GET', '/pod/syscalls/web-0', 'read'],
  ['GET', '/audit/verdicts', 'read'],
  ['GET', '/node/status', 'read'],
  ['GET', '/version', 'read'],
  // image supply chain
  ['POST', `/images/${DIGEST}/vulnerabilities`, 'supplychain', {}],
  ['POST', `/images/${DIGEST}/sbom`, 'supplychain', {}],
  ['POST', `/images/${DIGEST}/attestation`, 'supplychain', {}],
  ['GET', `/images/${DIGEST}/vulnerabilities`, 'read'],
  ['GET', `/images/${DIGEST}/sbom`, 'read'],
  ['GET', `/images/${DIGEST}/sbom/cyclonedx`, 'read'],
  ['GET', '/vulnerabilities', 'read'],
  ['GET', '/vulnerabilities/CVE-2024-0001/exposure', 'read'],
  ['GET', `/images/${DIGEST}/attestation`, 'read'],
  ['GET', '/attestations', 'read'],
  ['GET', '/attestations/running', 'read'],
  ['GET', '/attestations/policy', 'read'],
  ['GET', '/image-trust', 'read'],
  // workload profiling: seccomp
  ['GET', '/seccomp/profiles', 'read'],
  ['GET', '/seccomp/profiles/shop/Deployment/web', 'read'],
  ['GET', '/seccomp/profiles/shop/Deployment/web/export', 'read'],
  ['POST', '/seccomp/profiles/shop/Deployment/web/export', 'read', {}],
  ['PUT', '/seccomp/crs/shop/web', 'ingest', {}],
  ['DELETE', '/seccomp/crs/shop/web', 'ingest'],
  ['GET', '/seccomp/denials', 'read'],
  ['POST', '/seccomp/denials', 'ingest', {}],
  ['POST', '/seccomp/node-status', 'ingest', {}],
  // workload profiling: runtime inventory
  ['GET', '/workloads/shop/Deployment/web/runtime', 'read'],
  ['GET', `/images/${DIGEST}/runtime`, 'read'],
  ['POST', '/runtime/executables', 'ingest', []],
  ['POST', '/runtime/coverage', 'ingest', []],
  ['GET', '/workloads/shop/Deployment/web/capabilities', 'read'],
  ['GET', '/workloads', 'read'],
  ['GET', '/workloads/shop/Deployment/web/profile/versions', 'read'],
  ['GET', '/workloads/shop/Deployment/web/profile/versions/1', 'read'],
  ['GET', '/workloads/shop/Deployment/web/profile/diff', 'read'],
  ['POST', '/runtime/capabilities', 'ingest', []],
  // workload profiling: compute
  ['GET', '/compute/latest?namespace=shop', 'read'],
  ['GET', '/compute/history/9d7a1c52-0000-4000-8000-000000000001', 'read'],
  ['GET', '/compute/contention?namespace=shop', 'read'],
  ['GET', '/compute/findings', 'read'],
  ['GET', '/compute/nodes', 'read'],
  ['POST', '/pod/compute/batch', 'ingest', {}],
  ['POST', '/pod/compute/history/batch', 'ingest', {}],
]
const SUPPLY_CHAIN_WRITES = ROUTES.filter(([, , scope]) => scope === 'supplychain')

const brokers = []
const folders = []
/** Starts a broker without waiting for it and keeps everything that it prints in `printed`. */
async function startLogged(env) {
  const b = await startBroker({ env, wait: false })
  brokers.push(b)
  b.printed = ''
  for (const stream of [b.child.stdout, b.child.stderr])
    stream.on('data', (chunk) => {
      b.printed += chunk
    })
  return b
}
/** The same, and waits until it is healthy. */
async function startHealthyLogged(env) {
  const b = await startLogged(env)
  await eventually(
    () => {
      assert.equal(b.child.exitCode, null, `the broker exited:\n${b.printed.slice(-2000)}`)
      return fetch(`${b.url}/health`).then(
        (r) => r.status === 200,
        () => false,
      )
    },
    { timeoutMs: 45_000, what: 'health' },
  )
  return b
}
/** A broker that is started when the first case asks for it. */
const lazyBroker = (env) => {
  let starting
  return () => (starting ??= (async () => startHealthyLogged(typeof env === 'function' ? await env() : env))())
}
after(async () => {
  await Promise.all(brokers.map((b) => b.stop()))
  await Promise.all(folders.map((f) => rm(f, { recursive: true, force: true })))
})

async function tokenFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'broker-tokens-'))
  folders.push(folder)
  return folder
}

const scoped = lazyBroker(ALL_TOKENS)
const open = lazyBroker({})
const legacyOnly = lazyBroker({ BROKER_AUTH_TOKEN: 'short' })
const blank = lazyBroker({
  BROKER_TOKEN_READ: '',
  BROKER_TOKEN_INGEST: '   ',
  BROKER_TOKEN_SUPPLYCHAIN: '\t',
  BROKER_AUTH_TOKEN: ' ',
})
const fromFiles = lazyBroker(async () => {
  const folder = await tokenFolder()
  const env = {}
  for (const [name, variable] of Object.entries(VARIABLES)) {
    const file = join(folder, name)
    await writeFile(file, `${TOKENS[name]}\n`)
    env[`${variable}_FILE`] = file
  }
  return env
})

/** Sends the path exactly as given (fetch would normalise it). */
function raw(url, method, path, { bearer, authorization, body, headers = {} } = {}) {
  const { hostname, port } = new URL(url)
  const payload = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((ok, no) => {
    const req = httpRequest(
      {
        hostname,
        port,
        method,
        path,
        agent: false,
        headers: {
          ...(payload === undefined
            ? {}
            : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) }),
          ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
          ...(authorization ? { authorization } : {}),
          ...headers,
        },
      },
      (res) => {
        let text = ''
        res.setEncoding('utf8')
        res.on('data', (chunk) => {
          text += chunk
        })
        res.on('end', () => ok({ status: res.statusCode, headers: res.headers, text }))
        res.on('error', no)
      },
    )
    req.on('error', no)
    req.end(payload)
  })
}

function assertUnauthorized(r, what) {
  assert.equal(r.status, 401, what)
  assert.equal(r.text, 'missing or invalid bearer token', what)
  const challenge = r.headers.get ? r.headers.get('www-authenticate') : r.headers['www-authenticate']
  assert.equal(challenge, 'Bearer', what)
}
function assertForbidden(r, scope, what) {
  assert.equal(r.status, 403, what)
  assert.ok(r.text.includes(`token lacks the '${scope}' scope`), `${what}: body was ${r.text}`)
}
function assertPassed(r, what) {
  assert.ok(r.status !== 401 && r.status !== 403, `${what}: answered ${r.status} ${r.text}`)
}

const pod = (name, over = {}) => ({
  pod_name: name,
  pod_ip: '10.7.0.1',
  pod_namespace: 'shop',
  node_name: 'node-a',
  is_dead: false,
  time_stamp: '2025-03-01T10:00:00',
  ...over,
})

// ---- the scope of every route

for (const [method, path, scope, body] of ROUTES) {
  const shown = path.split('?')[0].replace(DIGEST, '{digest}')
  check(`auth: ${method} ${shown} needs the scope ${scope}`, async () => {
    const b = await scoped()
    const ask = (bearer) => b.request(method, path, { bearer, body })
    assertUnauthorized(await ask(undefined), 'no token')
    assertUnauthorized(await ask('tok-nobody-knows-this'), 'unknown token')
    for (const [name, token] of Object.entries(TOKENS)) {
      const r = await ask(token)
      if (GRANTS[name].includes(scope)) assertPassed(r, `${name} token`)
      else assertForbidden(r, scope, `${name} token`)
    }
  })
}

check('auth: health and metrics are open when auth is on', async () => {
  const b = await scoped()
  for (const path of ['/health', '/metrics']) {
    for (const bearer of [undefined, 'tok-nobody-knows-this', TOKENS.ingest]) {
      assert.equal((await b.get(path, { bearer })).status, 200, `${path} with ${bearer ?? 'no token'}`)
    }
  }
})

check('auth: an unknown path is 404 with an empty body before the token is looked at', async () => {
  const b = await scoped()
  for (const [method, path] of [
    ['GET', '/no-such-route'],
    ['POST', '/no/such/route'],
    ['GET', '/pod/nothing/here/at/all'],
  ]) {
    for (const bearer of [undefined, 'tok-nobody-knows-this', TOKENS.read, TOKENS.ingest]) {
      const r = await b.request(method, path, { bearer, body: method === 'POST' ? {} : undefined })
      assert.equal(r.status, 404, `${method} ${path} with ${bearer ?? 'no token'}`)
      assert.equal(r.text, '', `${method} ${path} with ${bearer ?? 'no token'}`)
    }
  }
})

check('auth: 401 and 403 come before the body is judged', async () => {
  const b = await scoped()
  const send = (bearer) =>
    b.request('POST', '/pod/spec', {
      bearer,
      body: '{ not json',
      raw: true,
      headers: { 'content-type': 'application/json' },
    })
  assertUnauthorized(await send(undefined), 'no token')
  assertForbidden(await send(TOKENS.read), 'ingest', 'read token')
  assert.equal((await send(TOKENS.ingest)).status, 400)
})

check('auth: a refused write writes nothing', async () => {
  const b = await scoped()
  const name = 'refused-write'
  assert.equal((await b.post('/pod/spec', pod(name))).status, 401)
  assert.equal((await b.post('/pod/spec', pod(name), { bearer: TOKENS.read })).status, 403)
  assert.equal((await b.post('/pod/spec', pod(name), { bearer: TOKENS.supplychain })).status, 403)
  assert.equal((await b.get(`/pod/name/${name}`, { bearer: TOKENS.read })).status, 404)
  assert.equal((await b.post('/pod/spec', pod(name), { bearer: TOKENS.ingest })).status, 200)
  assert.equal((await b.get(`/pod/name/${name}`, { bearer: TOKENS.read })).status, 200)
})

// ---- the header

check('auth: the scheme is Bearer, in any case of letters', async () => {
  const b = await scoped()
  const ask = (authorization) => raw(b.url, 'GET', '/version', { authorization })
  assert.equal((await ask(`Bearer ${TOKENS.read}`)).status, 200)
  for (const scheme of ['bearer', 'BEARER', 'BeareR']) assert.equal((await ask(`${scheme} ${TOKENS.read}`)).status, 200)
  for (const wrong of [`Basic ${TOKENS.read}`, `Token ${TOKENS.read}`, TOKENS.read, 'Bearer', `Bearer${TOKENS.read}`]) {
    assertUnauthorized(await ask(wrong), wrong.replace(TOKENS.read, '<token>'))
  }
})

check('auth: spaces around the token in the header are trimmed', async () => {
  const b = await scoped()
  assert.equal((await raw(b.url, 'GET', '/version', { authorization: `Bearer    ${TOKENS.read}` })).status, 200)
})

check('auth: a part of a token is not the token', async () => {
  const b = await scoped()
  for (const wrong of [TOKENS.read.slice(0, -1), TOKENS.read.slice(1), `${TOKENS.read}x`, TOKENS.read.toUpperCase()]) {
    assertUnauthorized(await b.get('/version', { bearer: wrong }), 'altered token')
  }
})

// ---- the path the decision is taken on

check('auth: a percent-encoded path does not get around the scope', async () => {
  const b = await scoped()
  const flow = {
    uuid: '3f2c6f0e-0000-4000-8000-000000000001',
    pod_name: 'smuggled',
    pod_namespace: 'shop',
    pod_ip: '10.7.0.9',
    pod_port: '0',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
    traffic_in_out_ip: '10.7.0.10',
    traffic_in_out_port: '443',
    decision: 'ALLOW',
    time_stamp: '2025-03-01T10:00:00',
  }
  const path = '/pod/traffic/%62atch'
  assert.ok([401, 404].includes((await raw(b.url, 'POST', path, { body: [flow] })).status), 'no token')
  assert.ok(
    [403, 404].includes((await raw(b.url, 'POST', path, { body: [flow], bearer: TOKENS.read })).status),
    'read token',
  )
  assert.ok(
    [403, 404].includes((await raw(b.url, 'POST', path, { body: [flow], bearer: TOKENS.supplychain })).status),
    'supplychain token',
  )
  assert.equal((await b.get('/pod/traffic/smuggled', { bearer: TOKENS.read })).status, 404)
})

check('auth: an open path as a prefix opens nothing behind it', async () => {
  const b = await scoped()
  for (const path of [
    '/health/../pod/info',
    '/health/%2e%2e/pod/info',
    '/metrics/..%2fpod/info',
    '//pod/info',
    '/%70od/info',
    '/pod/info/',
    '/POD/INFO',
  ]) {
    const r = await raw(b.url, 'GET', path)
    assert.ok([400, 401, 404].includes(r.status), `${path} answered ${r.status}`)
  }
})

// ---- configuration

check('auth: it is off by default', async () => {
  const b = await open()
  assert.equal((await b.post('/pod/spec', pod('open-write'))).status, 200)
  assert.equal((await b.get('/pod/name/open-write')).status, 200)
  assert.equal((await b.get('/pod/info')).status, 200)
  assert.equal((await b.get('/version')).status, 200)
  assert.equal((await b.get('/no-such-route')).status, 404)
})

check('auth: with auth off an Authorization header changes nothing', async () => {
  const b = await open()
  for (const bearer of ['whatever', TOKENS.read]) {
    assert.equal((await b.get('/pod/info', { bearer })).status, 200)
    assert.equal((await b.post('/pod/traffic/batch', [], { bearer })).status, 200)
  }
})

check('auth: supply-chain ingest is 403 while auth is off', async () => {
  const b = await open()
  for (const [method, path, , body] of SUPPLY_CHAIN_WRITES) {
    assert.equal((await b.request(method, path, { body })).status, 403, path)
    assert.equal(
      (await b.request(method, path, { body, bearer: TOKENS.supplychain })).status,
      403,
      `${path} with a token nobody configured`,
    )
  }
})

check('auth: supply-chain ingest is 403 with only the legacy shared token', async () => {
  const b = await legacyOnly()
  for (const [method, path, , body] of SUPPLY_CHAIN_WRITES) {
    assert.equal((await b.request(method, path, { body, bearer: 'short' })).status, 403, path)
    assertUnauthorized(await b.request(method, path, { body }), `${path} without a token`)
  }
})

check('auth: the legacy shared token alone turns auth on and grants read and ingest', async () => {
  const b = await legacyOnly()
  assertUnauthorized(await b.get('/pod/info'), 'no token')
  assertUnauthorized(await b.post('/pod/traffic/batch', []), 'no token')
  assert.equal((await b.get('/pod/info', { bearer: 'short' })).status, 200)
  assert.equal((await b.post('/pod/traffic/batch', [], { bearer: 'short' })).status, 200)
})

check('auth: each token can come from a file and its line end is not part of it', async () => {
  const b = await fromFiles()
  const probes = [
    ['GET', '/version', 'read'],
    ['POST', '/pod/traffic/batch', 'ingest', []],
    ['POST', `/images/${DIGEST}/vulnerabilities`, 'supplychain', {}],
  ]
  for (const [method, path, scope, body] of probes) {
    assertUnauthorized(await b.request(method, path, { body }), `${path} without a token`)
    for (const [name, token] of Object.entries(TOKENS)) {
      const r = await b.request(method, path, { body, bearer: token })
      if (GRANTS[name].includes(scope)) assertPassed(r, `${name} token on ${path}`)
      else assertForbidden(r, scope, `${name} token on ${path}`)
    }
  }
})

check('auth: a blank token is the same as none', async () => {
  const b = await blank()
  assert.equal((await b.get('/pod/info')).status, 200)
  assert.equal((await b.post('/pod/traffic/batch', [])).status, 200)
})

for (const [first, second] of [
  ['read', 'ingest'],
  ['supplychain', 'legacy'],
]) {
  check(`auth: the same value in ${VARIABLES[first]} and ${VARIABLES[second]} refuses to start`, async () => {
    const value = 'one-value-twice-71c04e'
    const b = await startLogged({ ...ALL_TOKENS, [VARIABLES[first]]: value, [VARIABLES[second]]: value })
    const exit = await Promise.race([b.exited, sleep(40_000, null, { ref: false })])
    assert.ok(exit, 'the process is still running')
    assert.notEqual(exit.code, 0)
    await eventually(() => b.printed.includes(VARIABLES[first]) && b.printed.includes(VARIABLES[second]), {
      what: 'a line naming both variables',
    })
    assert.ok(!b.printed.includes(value), 'the value is not printed')
  })
}

check('auth: the log names the variables that gave tokens and never a token', async () => {
  const b = await scoped()
  await b.get('/version', { bearer: TOKENS.read })
  await b.get('/version', { bearer: 'tok-nobody-knows-this' })
  await eventually(() => Object.values(VARIABLES).every((v) => b.printed.includes(v)), {
    what: 'the variables in the log',
  })
  for (const token of [...Object.values(TOKENS), 'tok-nobody-knows-this'])
    assert.ok(!b.printed.includes(token), 'a token is in the log')
})

// ---- CORS

check('auth: a preflight needs no token', async () => {
  const b = await scoped()
  const origin = 'https://ui.example'
  const r = await raw(b.url, 'OPTIONS', '/pod/info', {
    headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' },
  })
  assert.ok(r.status >= 200 && r.status < 300, `answered ${r.status}`)
  assert.ok(['*', origin].includes(r.headers['access-control-allow-origin']))
  assert.match(r.headers['access-control-allow-methods'] ?? '', /\*|GET/)
  assert.match(r.headers['access-control-allow-headers'] ?? '', /\*|authorization/i)
  assert.equal(r.headers['access-control-max-age'], '3600')
})

check('auth: any origin may read an answer', async () => {
  const b = await scoped()
  const origin = 'https://ui.example'
  const r = await raw(b.url, 'GET', '/version', { bearer: TOKENS.read, headers: { origin } })
  assert.equal(r.status, 200)
  assert.ok(['*', origin].includes(r.headers['access-control-allow-origin']))
})
