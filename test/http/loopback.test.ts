/** The quick start: without tokens, and where no address is told, this machine alone is served, and no page that points its name at it. */
import assert from 'node:assert/strict'
import net from 'node:net'
import os from 'node:os'
import { test } from 'node:test'
import { loadConfig } from '../../lib/config/index.ts'
import { createHosts, refuseOtherHosts } from '../../lib/http/server/allowed-hosts.ts'
import { close, listenOnEach } from '../../lib/http/server/listen.ts'
import { get } from '../support/broker.ts'
import { freePort } from '../support/free-port.ts'

const hasIpv6 = Object.values(os.networkInterfaces()).some((addresses) =>
  addresses!.some(({ address }) => address === '::1'),
)
const TOKEN = 'a-token-of-sixteen-characters'
const loopback = (port: number) => [
  { host: '127.0.0.1', port },
  { host: '::1', port },
]
const fetch = () => new Response('here')

test('without tokens and without LISTEN_ADDR the loopback addresses of both families are served, and no other', () => {
  const { listen, isLoopbackOnly } = loadConfig({})
  assert.deepEqual({ listen, isLoopbackOnly }, { listen: loopback(9090), isLoopbackOnly: true })
})

test('with a token, or with LISTEN_ADDR, it is as it was', () => {
  const everywhere = [
    { host: '::', port: 9090 },
    { host: '0.0.0.0', port: 9090 },
  ]
  for (const name of ['BROKER_TOKEN_READ', 'BROKER_TOKEN_INGEST', 'BROKER_TOKEN_SUPPLYCHAIN', 'BROKER_AUTH_TOKEN']) {
    const { listen, isLoopbackOnly } = loadConfig({ [name]: TOKEN })
    assert.deepEqual({ listen, isLoopbackOnly }, { listen: everywhere, isLoopbackOnly: false }, name)
  }
  const { listen, isLoopbackOnly } = loadConfig({ LISTEN_ADDR: '0.0.0.0:80' })
  assert.deepEqual({ listen, isLoopbackOnly }, { listen: [{ host: '0.0.0.0', port: 80 }], isLoopbackOnly: false })
})

test('both addresses answer on one port', { skip: !hasIpv6 && 'this machine has no IPv6' }, async (t) => {
  const port = await freePort()
  const listeners = await listenOnEach(fetch, loopback(port))
  t.after(() => Promise.all(listeners.map(({ server }) => close(server, 1_000))))
  assert.deepEqual(
    listeners.map(({ address }) => address),
    loopback(port),
  )
  for (const host of ['127.0.0.1', '[::1]']) assert.equal((await get(`http://${host}:${port}/`)).text, 'here')
})

test('a family that the machine lacks is left out', async (t) => {
  const port = await freePort()
  // No machine has an address of the documentation.
  const listeners = await listenOnEach(fetch, [
    { host: '127.0.0.1', port },
    { host: '2001:db8::1', port },
  ])
  t.after(() => Promise.all(listeners.map(({ server }) => close(server, 1_000))))
  assert.equal(listeners.length, 1)
  assert.equal((await get(`http://127.0.0.1:${port}/`)).text, 'here')
})

test('a port that is taken on one of them is told, and nothing listens', {
  skip: !hasIpv6 && 'this machine has no IPv6',
}, async (t) => {
  const port = await freePort()
  const holder = net.createServer()
  await new Promise<void>((resolve) => holder.listen({ host: '::1', port, ipv6Only: true }, resolve))
  t.after(() => holder.close())
  await assert.rejects(listenOnEach(fetch, loopback(port), { variable: 'LISTEN_ADDR' }), {
    message: new RegExp(
      `^LISTEN_ADDR: \\[::1\\]:${port} cannot be used \\(EADDRINUSE\\): another program listens there`,
    ),
  })
  await assert.rejects(get(`http://127.0.0.1:${port}/`), { code: 'ECONNREFUSED' })
})

test('names of this machine are let in, with a port or without, and no other name is', () => {
  const isAllowed = createHosts([])
  for (const host of [
    'localhost',
    'LOCALHOST:9090',
    'localhost.',
    '127.0.0.1',
    '127.0.0.1:9090',
    '[::1]',
    '[::1]:9090',
    'broker.localhost',
    undefined,
  ])
    assert.ok(isAllowed(host), host)
  for (const host of [
    'evil.example',
    'evil.example:9090',
    'localhost.evil.example',
    '127.0.0.1.nip.io',
    'notlocalhost',
    '10.0.0.1',
    '[::2]',
    '',
  ])
    assert.ok(!isAllowed(host), host)
})

test('names that are configured are let in besides, and with * every name is', () => {
  const isAllowed = createHosts(['ui.example', 'Telemetry-Frontend.shop.svc'])
  for (const host of ['ui.example', 'UI.example:8080', 'ui.example.', 'telemetry-frontend.shop.svc:8080', 'localhost'])
    assert.ok(isAllowed(host), host)
  for (const host of ['x.ui.example', 'ui.example.evil', 'example']) assert.ok(!isAllowed(host), host)
  assert.ok(createHosts(['*'])('evil.example'))
})

test('a page that points a name of its own at this machine gets nothing: 421', async (t) => {
  const port = await freePort()
  const listeners = await listenOnEach(fetch, loopback(port).slice(0, 1), {
    before: refuseOtherHosts(createHosts([]), 'LISTEN_ADDR'),
  })
  t.after(() => Promise.all(listeners.map(({ server }) => close(server, 1_000))))
  const url = `http://127.0.0.1:${port}/pod/info`
  const refused = await get(url, { headers: { host: `evil.example:${port}` } })
  assert.deepEqual([refused.status, /evil|LISTEN_ADDR/.test(refused.text)], [421, true])
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])
    assert.equal((await get(url, { headers: { host } })).status, 200)
})
