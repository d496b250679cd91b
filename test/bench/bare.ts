import { serve } from '@hono/node-server'
import { Hono } from 'hono'

const headers = { 'content-type': 'text/plain', 'content-length': '5' }
const app = new Hono().get('/bare', () => new Response('hello', { headers }))
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => process.stdout.write(`${port}\n`))
