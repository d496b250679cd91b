// What the supply-chain cases share: tokens, payloads, pods, a raw sender and a few assertions.
import assert from 'node:assert/strict'
import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'

// ---------------------------------------------------------------- tokens

export const tokens = {
  read: 'conformance-read-0123456789',
  ingest: 'conformance-ingest-0123456789',
  supplychain: 'conformance-supplychain-0123456789',
}
export const authEnv = {
  BROKER_TOKEN_READ: tokens.read,
  BROKER_TOKEN_INGEST: tokens.ingest,
  BROKER_TOKEN_SUPPLYCHAIN: tokens.supplychain,
}

// ---------------------------------------------------------------- names, digests, times

const sha256 = (text) => createHash('sha256').update(text).digest('hex')
/** A digest that only this label has. */
export const digest = (label) => `sha256:${sha256(label)}`
export const digest512 = (label) => `sha512:${createHash('sha512').update(label).digest('hex')}`

let serial = 0
/** A number nobody else got in this process. */
export const next = () => ++serial
export const cve = () => `CVE-2031-${String(10_000 + next())}`
/** An address of 10.64.0.0/10 that nobody else got. */
export const address = () => {
  const n = next()
  return `10.${64 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`
}

const base = Math.floor(Date.now() / 1000) * 1000 - 3 * 86_400_000
/** RFC 3339 with Z, `seconds` after a moment three days ago (whole seconds). */
export const at = (seconds = 0) => new Date(base + seconds * 1000).toISOString().replace('.000Z', 'Z')
/** RFC 3339 with Z, relative to now. */
export const fromNow = (seconds) => new Date(Date.now() + seconds * 1000).toISOString()
/** The naive UTC form of an RFC 3339 time with Z and no fraction. */
export const naive = (time) => time.replace(/Z$/, '')
/** Naive UTC, whole seconds, relative to now (what node agents send). */
export const naiveFromNow = (seconds) => new Date(Date.now() + seconds * 1000).toISOString().slice(0, 19)
export const naiveTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?$/

/** Microseconds since the epoch of a naive UTC or RFC 3339 time; digits after the sixth are cut. */
export function micros(time) {
  const m = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(time)
  assert.ok(m, `not a time: ${time}`)
  return BigInt(Date.parse(m[1] + (m[3] ?? 'Z'))) * 1000n + BigInt((m[2] ?? '').padEnd(6, '0').slice(0, 6))
}
export function sameTime(actual, expected, what = 'time') {
  assert.match(String(actual), naiveTime, `${what} is naive UTC`)
  assert.equal(micros(actual), micros(expected), `${what}: ${actual} is not ${expected}`)
}

// ---------------------------------------------------------------- payloads

export const finding = (over = {}) => ({
  id: cve(),
  package: { name: 'openssl', version: '3.0.1', type: 'deb', purl: 'pkg:deb/debian/openssl@3.0.1' },
  fixed_version: '3.0.2',
  severity: 'HIGH',
  ...over,
})
export const vulns = (image, findings = [], over = {}) => ({
  schema_version: 1,
  image: typeof image === 'string' ? { digest: image } : image,
  source: 'operator-scanner',
  scanned_at: at(0),
  vulnerabilities: findings,
  ...over,
})
export const component = (name, over = {}) => ({
  name,
  version: '1.0',
  purl: `pkg:generic/${name}@1.0`,
  type: 'generic',
  ...over,
})
export const sbom = (image, components = [], over = {}) => ({
  schema_version: 1,
  image: typeof image === 'string' ? { digest: image } : image,
  source: 'operator-scanner',
  scanned_at: at(0),
  format: 'CycloneDX',
  spec_version: '1.6',
  components,
  ...over,
})
export const keylessIdentity = {
  signer_kind: 'keyless',
  issuer: 'https://issuer.test',
  san: 'https://ci.test/team/app/build',
}
export const signature = (over = {}) => ({
  format: 'cosign-bundle',
  source: 'referrers',
  verified: true,
  ...keylessIdentity,
  ...over,
})
export const unverified = (error, over = {}) => ({
  format: 'cosign-bundle',
  source: 'referrers',
  verified: false,
  error,
  ...over,
})
export const statement = (over = {}) => ({
  format: 'bundle',
  source: 'referrers',
  verified: true,
  ...keylessIdentity,
  predicate_type: 'https://slsa.dev/provenance/v1',
  payload_sha256: sha256('statement'),
  ...over,
})
export const attestation = (image, over = {}) => ({
  schema_version: 1,
  digest: image,
  repository: 'registry.test/team/app',
  checked_at: at(0),
  verdict: 'verified',
  signatures: [signature()],
  attestations: [],
  ...over,
})

/** A P-256 public key as PEM, and the sha256 of its DER form. */
export function publicKey() {
  const { publicKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = key.export({ type: 'spki', format: 'pem' })
  const der = createPublicKey(pem).export({ type: 'spki', format: 'der' })
  return { pem, fingerprint: createHash('sha256').update(der).digest('hex') }
}

// ---------------------------------------------------------------- pods and traffic

export const container = (image, over = {}) => ({
  name: 'app',
  kind: 'regular',
  image: 'registry.test/team/app:v1',
  digest: image,
  digest_kind: 'repo',
  repository: 'registry.test/team/app',
  tag: 'v1',
  state: 'running',
  ...over,
})
/** A pod record as a node agent posts it. `kind: null` makes a bare pod. */
export function pod({
  name = `pod-${next()}`,
  ns,
  kind = 'Deployment',
  workload = 'web',
  ip = address(),
  containers,
  ...over
}) {
  return {
    pod_name: name,
    pod_namespace: ns,
    pod_ip: ip,
    pod_ips: [ip],
    node_name: 'node-a',
    is_dead: false,
    time_stamp: naiveFromNow(0),
    started_at: naiveFromNow(-40 * 86_400),
    host_network: false,
    pod_obj: { metadata: { name, namespace: ns, uid: `uid-${name}` } },
    workload_kind: kind,
    workload_name: kind ? workload : null,
    containers,
    ...over,
  }
}
export const flow = (observed, peerIp, over = {}) => ({
  uuid: `${sha256(`flow ${process.pid} ${next()}`).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')}`,
  pod_name: observed.pod_name,
  pod_namespace: observed.pod_namespace,
  pod_ip: observed.pod_ip,
  pod_port: '8080',
  ip_protocol: 'TCP',
  traffic_type: 'INGRESS',
  traffic_in_out_ip: peerIp,
  traffic_in_out_port: '0',
  decision: 'ALLOW',
  time_stamp: naiveFromNow(-60),
  ...over,
})

// ---------------------------------------------------------------- talking to a broker

export const query = (params = {}) => {
  const q = new URLSearchParams(
    Object.entries(params)
      .filter(([, v]) => v !== undefined)
      .map(([k, v]) => [k, String(v)]),
  ).toString()
  return q ? `?${q}` : ''
}

/** The routes of this group, each with the token that it needs. */
export function session(b) {
  const [reader, agent, supply] = [b.as(tokens.read), b.as(tokens.ingest), b.as(tokens.supplychain)]
  const gzipped = (path, body, encoding = 'gzip') =>
    supply.request('POST', path, {
      raw: true,
      body: gzipSync(Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body)),
      headers: { 'content-type': 'application/json', 'content-encoding': encoding },
    })
  const whole = async (path, params, start) => {
    const out = { items: [], pages: [] }
    let after = start
    for (let n = 0; ; n += 1) {
      assert.ok(n < 2_000, `${path}: the list does not end`)
      const r = ok(await reader.get(path + query({ ...params, after })))
      out.pages.push(r.json)
      out.items.push(...r.json.items)
      if (r.json.nextAfter === null) return out
      assert.notEqual(r.json.nextAfter, after, `${path}: the cursor does not move`)
      after = r.json.nextAfter
    }
  }
  return {
    reader,
    agent,
    supply,
    gzipped,
    whole,
    get: (path, params) => reader.get(path + query(params)),
    postVulns: (p, o) => supply.post(`/images/${p.image.digest}/vulnerabilities`, p, o),
    postVulnsGzip: (p, encoding) => gzipped(`/images/${p.image.digest}/vulnerabilities`, p, encoding),
    getVulns: (d, params) => reader.get(`/images/${d}/vulnerabilities${query(params)}`),
    allVulns: (d, params) => whole(`/images/${d}/vulnerabilities`, params),
    postSbom: (p, o) => supply.post(`/images/${p.image.digest}/sbom`, p, o),
    postSbomGzip: (p, encoding) => gzipped(`/images/${p.image.digest}/sbom`, p, encoding),
    getSbom: (d, params) => reader.get(`/images/${d}/sbom${query(params)}`),
    allSbom: (d, params) => whole(`/images/${d}/sbom`, params),
    cyclonedx: (d, params) => reader.get(`/images/${d}/sbom/cyclonedx${query(params)}`),
    attest: (p, o) => supply.post(`/images/${p.digest}/attestation`, p, o),
    getAttestation: (d) => reader.get(`/images/${d}/attestation`),
    exposure: (id, params) => reader.get(`/vulnerabilities/${id}/exposure${query(params)}`),
    /** Posts pods and returns their records. */
    async run(...pods) {
      for (const p of pods) {
        const r = await agent.post('/pod/spec', p)
        assert.equal(r.status, 200, `POST /pod/spec: ${r.text}`)
      }
      return pods
    },
    async flows(rows) {
      const r = await agent.post('/pod/traffic/batch', rows)
      assert.equal(r.status, 200, `POST /pod/traffic/batch: ${r.text}`)
      assert.equal(r.json, rows.length, 'every flow of the case is new')
    },
    /** One counter of GET /metrics, without labels. */
    async counter(name) {
      const r = await b.get('/metrics')
      assert.equal(r.status, 200)
      const line = r.text.split('\n').find((l) => l.startsWith(`${name} `) || l.startsWith(`${name}{}`))
      assert.ok(line, `GET /metrics has ${name}`)
      return Number(line.split(' ')[1])
    },
  }
}

/**
 * Sends bytes as they are, so that a case can lie about lengths, stall, or be answered before it has sent everything.
 * `pieces` are written in order: Buffers and strings as they are, numbers are pauses in milliseconds. Resolves with the answer
 * ({ status, headers, text, json }), or with { status: 0 } when the connection ended without one.
 */
export function rawPost(
  b,
  path,
  { token = tokens.supplychain, headers = {}, pieces = [], timeoutMs = 50_000, method = 'POST' } = {},
) {
  const { hostname, port } = new URL(b.url)
  return new Promise((done, failed) => {
    const socket = connect(Number(port), hostname)
    let got = Buffer.alloc(0)
    let over = false
    const timer = setTimeout(() => {
      over = true
      socket.destroy()
      failed(new Error(`no answer in ${timeoutMs} ms`))
    }, timeoutMs)
    const finish = (r) => {
      if (over) return
      over = true
      clearTimeout(timer)
      socket.destroy()
      done(r)
    }
    socket.on('error', () => {
      /* the answer, if any, was read before */
    })
    socket.on('close', () => finish(parse(got, true) ?? { status: 0, headers: new Headers(), text: '' }))
    socket.on('data', (d) => {
      got = Buffer.concat([got, d])
      const r = parse(got, false)
      if (r) finish(r)
    })
    socket.on('connect', async () => {
      const head = {
        host: `${hostname}:${port}`,
        'content-type': 'application/json',
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...headers,
      }
      socket.write(
        `${method} ${path} HTTP/1.1\r\n${Object.entries(head)
          .map(([k, v]) => `${k}: ${v}\r\n`)
          .join('')}\r\n`,
      )
      for (const piece of pieces) {
        if (over || socket.destroyed) return
        if (typeof piece === 'number') await new Promise((go) => setTimeout(go, piece))
        else if (!socket.write(piece))
          await new Promise((go) => {
            socket.once('drain', go)
            socket.once('close', go)
          })
      }
    })
  })
}
/** A body as HTTP chunks, end included. */
export const chunked = (...bodies) => [
  ...bodies.flatMap((body) => {
    const bytes = Buffer.from(body)
    const out = []
    for (let i = 0; i < bytes.length; i += 65_536) {
      const part = bytes.subarray(i, i + 65_536)
      out.push(`${part.length.toString(16)}\r\n`, part, '\r\n')
    }
    return out
  }),
  '0\r\n\r\n',
]

function parse(bytes, closed) {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const status = Number(first.split(' ')[1])
  const rest = bytes.subarray(end + 4)
  if (status === 100) return parse(rest, closed)
  const headers = new Headers(lines.map((l) => [l.slice(0, l.indexOf(':')), l.slice(l.indexOf(':') + 1).trim()]))
  let body = rest
  if (headers.has('content-length')) {
    if (rest.length < Number(headers.get('content-length')) && !closed) return undefined
    body = rest.subarray(0, Number(headers.get('content-length')))
  } else if ((headers.get('transfer-encoding') ?? '').includes('chunked')) {
    const parts = []
    for (let i = 0; ; ) {
      const eol = rest.indexOf('\r\n', i)
      if (eol < 0) {
        if (closed) break
        return undefined
      }
      const size = Number.parseInt(rest.subarray(i, eol).toString('latin1'), 16)
      if (size === 0) break
      if (rest.length < eol + 2 + size && !closed) return undefined
      parts.push(rest.subarray(eol + 2, eol + 2 + size))
      i = eol + 2 + size + 2
    }
    body = Buffer.concat(parts)
  } else if (!closed) return undefined
  const text = body.toString('utf8')
  let json
  try {
    json = JSON.parse(text)
  } catch {
    json = undefined
  }
  return { status, headers, text, json }
}

/** A JSON text of exactly `bytes` bytes: the payload plus an unknown key of filler. */
export function padded(payload, bytes) {
  const bare = Buffer.byteLength(JSON.stringify({ ...payload, filler: '' }))
  assert.ok(bytes >= bare, 'the payload is already larger')
  return JSON.stringify({ ...payload, filler: 'x'.repeat(bytes - bare) })
}

// ---------------------------------------------------------------- assertions

export function ok(r, status = 200) {
  assert.equal(r.status, status, `HTTP ${r.status}: ${String(r.text).slice(0, 500)}`)
  return r
}
/** A clean refusal: the status, a short plain text, nothing of the inside of the server. */
export function refused(r, status, words) {
  assert.equal(r.status, status, `HTTP ${r.status}: ${String(r.text).slice(0, 500)}`)
  assert.ok(r.text.trim().length > 0, 'the refusal says why')
  assert.ok(r.json === undefined || typeof r.json !== 'object', `error bodies are plain text: ${r.text.slice(0, 200)}`)
  assert.doesNotMatch(r.text, /\n\s+at .*:\d+:\d+|select .* from |insert into |node_modules/i, 'no stack, no SQL')
  if (words) assert.match(r.text, words)
  return r
}
export const keysOf = (o) => Object.keys(o).sort()
export function sameKeys(o, keys, what = 'object') {
  assert.deepEqual(keysOf(o), [...keys].sort(), `keys of ${what}`)
}
export const reportKeys = [
  'source',
  'reportDigest',
  'join',
  'digestKind',
  'scannedAt',
  'dbUpdatedAt',
  'scannerName',
  'scannerVersion',
  'osFamily',
  'osName',
  'osEosl',
  'imageRef',
  'itemCount',
  'sbomFormat',
  'receivedAt',
  'sbomSources',
  'sbomTrust',
  'attestation',
]
export const findingKeys = [
  'id',
  'aliases',
  'package',
  'installedVersion',
  'fixedVersions',
  'fixable',
  'severity',
  'score',
  'cvss',
  'title',
  'primaryUrl',
  'target',
  'class',
  'publishedAt',
  'lastModifiedAt',
  'filePaths',
  'omitted',
  'kev',
  'kevDateAdded',
  'epss',
  'epssPercentile',
  'sources',
  'reportDigests',
  'inUse',
  'inUseState',
  'inUseDetail',
  'tier',
  'tierFactors',
  'status',
  'decision',
  'decided',
]
export const severities = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN']

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
