/** Without tokens and without LISTEN_ADDR only this machine is served, and no web page that uses DNS rebinding. */
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

test('without tokens and without LISTEN_ADDR the broker listens on the loopback addresses of both families only', () => {
  const { listen, isLoopbackOnly } = loadConfig({})
  assert.deepEqual({ listen, isLoopbackOnly }, { listen: loopback(9090), isLoopbackOnly: true })
})

test('with a token the broker listens on all addresses, with LISTEN_ADDR on that address', () => {
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

test('an address that the machine does not have is left out', async (t) => {
  const port = await freePort()
  // 2001:db8::/32 is reserved for documentation, so no machine has this address.
  const listeners = await listenOnEach(fetch, [
    { host: '127.0.0.1', port },
    { host: '2001:db8::1', port },
  ])
  t.after(() => Promise.all(listeners.map(({ server }) => close(server, 1_000))))
  assert.equal(listeners.length, 1)
  assert.equal((await get(`http://127.0.0.1:${port}/`)).text, 'here')
})

test('a port in use on one of the addresses is an error that names it, and nothing listens', {
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

test('names of this machine are allowed, with or without a port, and others are not', () => {
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

test('configured names are allowed, too, and with * every name is', () => {
  const isAllowed = createHosts(['ui.example', 'Telemetry-Frontend.shop.svc'])
  for (const host of ['ui.example', 'UI.example:8080', 'ui.example.', 'telemetry-frontend.shop.svc:8080', 'localhost'])
    assert.ok(isAllowed(host), host)
  for (const host of ['x.ui.example', 'ui.example.evil', 'example']) assert.ok(!isAllowed(host), host)
  assert.ok(createHosts(['*'])('evil.example'))
})

test('a request with another name in Host is 421, a request with a name of this machine is served', async (t) => {
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
