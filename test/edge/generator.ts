/**
 * Valid and invalid requests, generated from a seed. Each is made of parts with known effects, so that the expected
 * answer is known without parsing the request.
 */

/** One request and its expected effects. */
export interface Shot {
  readonly bytes: Buffer
  /** Unique text at the end of a valid target. */
  readonly mark: string
  readonly method: string
  /** Status of the answer; null if any refusal, or the end of the connection, is allowed. */
  readonly status: number | null
  /** Method and target that the broker must get; null if it must get no request. */
  readonly heard: string | null
  /** Body that the broker must get. */
  readonly body: string
  /** The file of the console that a 200 must have; null if the broker answers. */
  readonly file: string | null
}

/** Credential that the broker must never get. */
export const SECRET = 'evil-credential'
const EXPORT = '/seccomp/profiles/shop/Deployment/web/export'
/** Forwarded where the console is served. */
export const TRY = '/networkpolicy/try'
const MAX_BODY_BYTES = 2 * 1024 * 1024

const PLAIN = [
  '/pod/info',
  '/pod/name/web-0',
  '/pod/ip/fd00::1',
  '/images/sha256:0a1b',
  "/a/~b/c_d/e!$&'()*+,;=:@",
  '/x.y/.z/w.',
  '/apis',
  EXPORT,
]
const QUERIES = [
  '',
  '?',
  '?limit=5',
  '?at=2026-01-01T00:00:00%2B00:00',
  '?a=%2e%2e/../%00&b',
  '?x=//\\',
  '?[{|}^`<>"]',
  '?a?b=/api//',
]
/** Targets that are refused. Requests that Node cannot parse are in DIRT. */
const CROOKED = [
  '//',
  '/.',
  '/..',
  '/../',
  '/./',
  '/pod/',
  '//pod/info',
  '/pod//info',
  '/pod/./info',
  '/pod/../info',
  '/pod/..',
  '/pod/...',
  '/a..b',
  '/%',
  '/%2e%2e/x',
  '/pod/%2E%2E/info',
  '/%70od/info',
  '/pod%2finfo',
  '/pod/%00',
  '/pod\\info',
  '/pod/..\\..\\x',
  '/pod/..;/x',
  '/pod/info#x',
  '/pod/{x}',
  '/pod/[x]',
  '/pod/"x"',
  '/pod/<x>',
  '/pod/a|b',
  '/pod/^',
  '/pod/`',
  '/api/',
  '/api//pod',
  '/api/../pod',
  '/api/%2e%2e/pod',
  '/pod/info/?x',
  'http://broker/pod/info',
  'HTTP://broker/pod/info',
  'http://x@broker/pod/spec',
  'https://broker',
  '*',
  '/x?a#b',
  '/x?\\',
]
const OTHER_METHODS = [
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'MKCOL',
  'COPY',
  'LOCK',
  'REPORT',
  'PURGE',
  'LINK',
  'SEARCH',
  'POST',
]
const FIELDS = [
  'Accept: */*',
  'Accept-Encoding: gzip',
  'User-Agent: x',
  'X-Twice: 1',
  'x-twice: 2',
  'X-Empty:',
  'X-Spaces: \t a \t ',
  'If-None-Match: "x"',
  'X-Request-Id: an-id-that-is-one',
  'X-Request-Id: not one',
  'Via: 1.1 other',
  'Range: bytes=0-1',
  'Origin: http://elsewhere',
  'X-Obs: \xe9\xff',
  'X-HTTP-Method-Override: DELETE',
  'X-Original-URL: /pod/spec',
  'X-Forwarded-For: 10.0.0.1',
  'Forwarded: for=x',
  'Content-Type: application/json',
]
const CREDENTIALS = [
  `Authorization: Bearer ${SECRET}`,
  `authorization: Bearer ${SECRET}`,
  `AUTHORIZATION:${SECRET}`,
  `aUtHoRiZaTiOn: \t${SECRET}`,
  `Authorization: Basic ${SECRET}\r\nAuthorization: Bearer ${SECRET}`,
  `Proxy-Authorization: Bearer ${SECRET}`,
  `proxy-authorization: ${SECRET}`,
  `Cookie: session=${SECRET}`,
  `cookie: a=1; b=${SECRET}`,
]
const HOPS = [
  'Keep-Alive: timeout=1',
  'TE: trailers',
  'Trailer: Authorization',
  'Upgrade: websocket',
  'Upgrade: h2c',
  'Proxy-Connection: keep-alive',
  'Connection: authorization',
  'Connection: keep-alive, Authorization, host',
  `Connection: x-hop\r\nX-Hop: ${SECRET}`,
  'Connection: upgrade',
  'Connection: content-length, transfer-encoding, content-type',
  'Connection: ,,',
  'HTTP2-Settings: x',
]
const HOSTS = ['edge', 'edge:8080', 'elsewhere', '127.0.0.1', '[::1]:80', 'broker.ns.svc', '']
const NO_HOSTS = ['a b', 'a/b', 'user@host', '[::1', 'a?b', 'a#b']
const LONG = 'n'.repeat(6_000)
/** Targets of the console, with the file that answers them or the status. */
const CONSOLE_TARGETS: readonly (readonly [target: string, result: string | number])[] = [
  ...[
    '/',
    '/?x',
    '/console/',
    '/console/index.html',
    '/console/workload/shop/Deployment/api',
    '/console/flows?a=b',
  ].map((target) => [target, 'index.html'] as const),
  ...['/console/nodes/a.b.c', '/console/x/', '/console/a/package.json', '/console/__proto__', `/console/${LONG}`].map(
    (target) => [target, 'index.html'] as const,
  ),
  ...['/console/%2e%2e/package.json', '/console/%2e%2e/%2e%2e/etc/passwd', '/console/%00', '/console/..%2f'].map(
    (target) => [target, target.includes('..') ? 400 : 'index.html'] as const,
  ),
  ['/console/icon.svg', 'icon.svg'],
  ['/console/assets/index-AbC_12-x.js', 'assets/index-AbC_12-x.js'],
  ['/console/assets/index-00ff.css?x', 'assets/index-00ff.css'],
  ...['/console', '/console?since=1h'].map((target) => [target, 308] as const),
  ...['index-AbC_12-x.js.map', '%69ndex-00ff.css', '%2e%2e/index.html', '__proto__', LONG, 'icon.svg', ''].map(
    (name) => [`/console/assets/${name}`, 404] as const,
  ),
  ...['.env', 'favicon.ico', 'package.json', `${LONG}.js`].map((name) => [`/console/${name}`, 404] as const),
  ...['/', '/etc/passwd', '..', '../', '../package.json', './x', '.', '%', '%zz', '%2', '\\x', '{x}', '#x', 'a//b'].map(
    (name) => [`/console/${name}`, 400] as const,
  ),
  ...['/console/assets/../index.html', '//console/', '/./console/', '/consol%65/', '/api/console/'].map(
    (target) => [target, 400] as const,
  ),
  ['/console/?a\\b', 400],
  ['http://edge/console/', 400],
]
const CONSOLE_PARTS = [
  ...['..', '.', '/', '//', '\\', '%2e', '%2E%2e', '%2f', '%5C', '%00', '%', '%c0%ae', '%252e', '..;', '~', ':', '{'],
  ...['assets', 'assets/', 'index.html', 'icon.svg', 'index-00ff.css', 'package.json', 'etc/passwd', '__proto__', 'a'],
]
/** A second request hidden in a body. */
const HIDDEN = `POST /pod/spec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${SECRET}\r\nContent-Length: 2\r\n\r\n{}`

/** Random numbers from a seed, the same on every machine (Marsaglia, xorshift). */
export function seeded(seed: number): (below: number) => number {
  let state = seed | 0 || 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

export class Generator {
  readonly #below: (n: number) => number
  readonly #hasConsole: boolean
  #number = 0

  constructor(seed: number, hasConsole = false) {
    this.#below = seeded(seed)
    this.#hasConsole = hasConsole
  }

  #one<T>(list: readonly T[]): T {
    return list[this.#below(list.length)]!
  }

  #chance(oneIn: number): boolean {
    return this.#below(oneIn) === 0
  }

  /** A request with valid framing, so that the next request on the connection is parsed correctly. */
  clean(): Shot {
    return this.#hasConsole && this.#chance(2) ? this.#toConsole() : this.#toBroker()
  }

  #toBroker(): Shot {
    const mark = `n${this.#number++}x`
    const isCrooked = this.#chance(4)
    const isPost = !isCrooked && this.#chance(8)
    const posts = this.#hasConsole ? [EXPORT, TRY] : [EXPORT]
    const path = isPost ? this.#one(posts) : this.#one(PLAIN)
    let method = isPost ? 'POST' : this.#one(['GET', 'GET', 'GET', 'HEAD'])
    if (this.#chance(6)) method = this.#one(OTHER_METHODS)
    const query = this.#one(QUERIES)
    const isOddQuery = query.includes('\\')
    const search = query === '' ? `?${mark}` : `${query}${mark}`
    const base = this.#chance(2) ? '/api' : ''
    const sent = isCrooked ? `${this.#one(CROOKED)}` : base + path + search
    const isBadHost = this.#chance(40)
    const { field, text, body, isRefused } = this.#body(method)
    const isKnown = method === 'GET' || method === 'HEAD' || (method === 'POST' && posts.includes(path))

    let status = 200
    if (isCrooked || isOddQuery) status = 400
    else if (!isKnown) status = 405
    else if (method !== 'POST' && field !== '' && field !== 'Content-Length: 0') status = 400
    else if (isRefused !== null) status = isRefused
    else if (isBadHost) status = 400

    const fields = [
      `Host: ${this.#one(isBadHost ? NO_HOSTS : HOSTS)}`,
      ...this.#fields(),
      ...(field === '' ? [] : [field]),
    ]
    const head = `${method} ${sent} HTTP/1.1\r\n${this.#shuffled(fields).join('\r\n')}\r\n\r\n`
    const heard = status === 200 ? `${method} ${path}${search}` : null
    return {
      bytes: Buffer.from(head + text, 'latin1'),
      mark,
      method,
      status,
      heard,
      body: method === 'POST' ? body : '',
      file: null,
    }
  }

  /** A request that the proxy answers itself, or refuses; the broker must not get it. */
  #toConsole(): Shot {
    const method = this.#chance(8) ? this.#one(OTHER_METHODS) : this.#one(['GET', 'GET', 'GET', 'HEAD'])
    const known = this.#chance(3) ? null : this.#one(CONSOLE_TARGETS)
    const [target, result] = known ?? [this.#strangeTarget(), null]
    const file = typeof result === 'string' ? result : null
    let status = file === null ? (result as number | null) : 200
    if (status !== null && status !== 400 && !['GET', 'HEAD'].includes(method)) status = 405
    const search = target.includes('?') || !this.#chance(3) ? '' : this.#one(['?', '?since=1h', '?x=/../%2e%2e//'])
    const fields = this.#shuffled([`Host: ${this.#one(HOSTS)}`, ...this.#fields()])
    const head = `${method} ${target}${search} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`
    return {
      bytes: Buffer.from(head, 'latin1'),
      mark: `n${this.#number++}x`,
      method,
      status,
      heard: null,
      body: '',
      file,
    }
  }

  /** Paths below the console with parts that file servers have misread. Any answer is fine except another file. */
  #strangeTarget(): string {
    return `/console/${Array.from({ length: 1 + this.#below(8) }, () => this.#one(CONSOLE_PARTS)).join('')}`
  }

  /**
   * The last request of its connection: Node may be unable to parse it, or it has no end. A damaged one has no SECRET,
   * since the damage may rename the field of the credential.
   */
  dirty(): Shot {
    const target = `${this.#one(PLAIN)}?d${this.#number++}`
    const text = this.#one(DIRT)(target, this)
    const isDamaged = this.#chance(3)
    const bytes = Buffer.from(isDamaged ? text.replaceAll(SECRET, 'a-credential') : text, 'latin1')
    if (isDamaged) this.#damage(bytes)
    const sent = this.#chance(6) ? bytes.subarray(0, this.#below(bytes.length)) : bytes
    return { bytes: sent, mark: '', method: '', status: null, heard: null, body: '', file: null }
  }

  #fields(): string[] {
    const fields: string[] = []
    for (let i = this.#below(4); i > 0; i--) fields.push(this.#one(FIELDS))
    if (this.#chance(3)) fields.push(this.#one(CREDENTIALS))
    if (this.#chance(4)) fields.push(this.#one(HOPS))
    if (this.#chance(200)) fields.push(`X-Long: ${'y'.repeat(8_000)}`)
    return fields
  }

  /** `isRefused` is the status with which a POST is refused because of its body, or null. */
  #body(method: string): { field: string; text: string; body: string; isRefused: number | null } {
    const none = { field: '', text: '', body: '', isRefused: null }
    if (method !== 'POST' && !this.#chance(12)) return none
    const body = this.#one(['', '{}', '{"add":["read"]}', HIDDEN, '\0\r\n\r\n', 'GET /pod/info HTTP/1.1\r\n\r\n'])
    switch (this.#below(6)) {
      case 0:
        return none
      case 1:
        return {
          field: `Content-Length: 000${body.length}`.replace(/: 0000$/, ': 0'),
          text: body,
          body,
          isRefused: null,
        }
      case 2:
        return { ...chunked(body, ['']), isRefused: null }
      case 3:
        return { ...chunked(body, [';x=y', ';x="y z"', ';x']), isRefused: null }
      case 4: {
        const coded = chunked(body, [''])
        return { ...coded, field: 'Transfer-Encoding: gzip, chunked', isRefused: 400 }
      }
      default:
        return { field: `Content-Length: ${body.length}`, text: body, body, isRefused: null }
    }
  }

  #shuffled(fields: string[]): string[] {
    for (let i = fields.length - 1; i > 0; i--) {
      const j = this.#below(i + 1)
      ;[fields[i], fields[j]] = [fields[j]!, fields[i]!]
    }
    return fields
  }

  #damage(bytes: Buffer): void {
    for (let i = 1 + this.#below(4); i > 0; i--) bytes[this.#below(bytes.length)] = this.#below(256)
  }

  /** Random bytes, one character each. */
  noise(length: number): string {
    return Array.from({ length }, () => String.fromCharCode(this.#below(256))).join('')
  }
}

function chunked(body: string, extensions: readonly string[]): { field: string; text: string; body: string } {
  const extension = extensions[body.length % extensions.length]!
  const chunk = body === '' ? '' : `${body.length.toString(16)}${extension}\r\n${body}\r\n`
  return { field: 'Transfer-Encoding: chunked', text: `${chunk}0\r\n\r\n`, body }
}

const line = (target: string, ...fields: string[]) =>
  [`GET ${target} HTTP/1.1`, 'Host: x', ...fields, '', ''].join('\r\n')
const post = (...fields: string[]) => [`POST ${EXPORT} HTTP/1.1`, 'Host: x', ...fields, '', ''].join('\r\n')

/** Requests that parsers of different servers are known to read differently. */
const DIRT: ((target: string, generator: Generator) => string)[] = [
  (target) => line(target).replace('GET', 'get'),
  (target) => line(target).replace('GET', 'GeT'),
  (target) => line(target).replace('GET', 'GET\0'),
  (target) => line(target).replace('GET ', 'GET\t'),
  (target) => line(target).replace('GET', 'FOO'),
  (target) => line(target).replace('GET', ' GET'),
  (target) => line(target).replace('GET', ''),
  (target) => line(target).replace(' HTTP/1.1', ''),
  (target) => line(target).replace('HTTP/1.1', 'HTTP/2.0'),
  (target) => line(target).replace('HTTP/1.1', 'HTTP/1.1 HTTP/1.1'),
  (target) => line(target).replace('HTTP/1.1', 'HTTP/1.0'),
  (target) => line(target).replace('HTTP/1.1', 'http/1.1'),
  (target) => line(target).replaceAll('\r\n', '\n'),
  (target) => line(target).replaceAll('\r\n', '\r'),
  (target) => `\r\n\r\n\r\n${line(target)}`,
  (target) => line(`${target}\0`),
  (target) => line(`${target} x`),
  (target) => line(`${target}\xe9`),
  (target) => line(`${target}\r\nAuthorization: Bearer ${SECRET}`),
  (target) => line(`/${'a'.repeat(20_000)}${target}`),
  (target) => line(target, `X: ${'y'.repeat(20_000)}`),
  (target) => line(target, ...Array.from({ length: 3_000 }, (_, i) => `X-${i}: y`)),
  (target) => line(target, `Authorization : Bearer ${SECRET}`),
  (target) => line(target, ` Authorization: Bearer ${SECRET}`),
  (target) => line(target, `Authorization\0: Bearer ${SECRET}`),
  (target) => line(target, `X: a\nAuthorization: Bearer ${SECRET}`),
  (target) => line(target, `X: a\rAuthorization: Bearer ${SECRET}`),
  (target) => line(target, `X: a\0${SECRET}`),
  (target) => line(target, `X:\r\n Authorization: Bearer ${SECRET}`).replace(SECRET, 'folded'),
  (target) => line(target, 'Host: y'),
  (target) => line(target).replace('Host: x\r\n', ''),
  (target) => line(target).replace('Host: x\r\n', 'Host : x\r\n'),
  (target) => line(target, 'Content-Length: 5', 'Content-Length: 6') + HIDDEN,
  (target) => `${line(target, 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n${HIDDEN}`,
  (target) => line(target, 'Content-Length: -1') + HIDDEN,
  (target) => line(target, 'Content-Length: +5') + HIDDEN,
  (target) => line(target, 'Content-Length: 0x5') + HIDDEN,
  (target) => line(target, 'Content-Length: 99999999999999999999') + HIDDEN,
  (target) => line(target, 'Transfer-Encoding: identity') + HIDDEN,
  (target) => line(target, 'Transfer-Encoding: xchunked') + HIDDEN,
  (target) => line(target, 'Transfer-Encoding : chunked') + HIDDEN,
  () => line('\\pod'),
  () => post('Content-Length: 5', 'Content-Length: 5') + HIDDEN,
  () => post('Content-Length: 5, 5') + HIDDEN,
  () => `${post('Content-Length: 4', 'Transfer-Encoding: chunked')}5c\r\n${HIDDEN}\r\n0\r\n\r\n`,
  () => `${post('Transfer-Encoding: chunked', 'Content-Length: 4')}0\r\n\r\n${HIDDEN}`,
  () => `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity')}0\r\n\r\n${HIDDEN}`,
  () => `${post('Transfer-Encoding: chunked, identity')}0\r\n\r\n${HIDDEN}`,
  () => `${post('Transfer-Encoding:\r\n chunked')}0\r\n\r\n${HIDDEN}`,
  () => `${post('Transfer-Encoding:\x0bchunked')}0\r\n\r\n${HIDDEN}`,
  () => `${post('Transfer-Encoding: chunked')}2\n{}\n0\n\n${HIDDEN}`,
  () => `${post('Transfer-Encoding: chunked')}2 \r\n{}\r\n0\r\n\r\n`,
  () => `${post('Transfer-Encoding: chunked')}2\r\n{}X0\r\n\r\n${HIDDEN}`,
  () => `${post('Transfer-Encoding: chunked')}ffffffffffffffff\r\n{}`,
  () => `${post('Transfer-Encoding: chunked')}-2\r\n{}\r\n0\r\n\r\n`,
  () => `${post('Transfer-Encoding: chunked')}0x2\r\n{}\r\n0\r\n\r\n`,
  () => `${post('Transfer-Encoding: chunked')}2;${'e'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`,
  () => `${post('Transfer-Encoding: chunked')}0\r\nAuthorization: Bearer ${SECRET}\r\n\r\n`,
  () => `${post('Transfer-Encoding: chunked')}5\r\n{}`,
  (target) => line(target, 'Expect: 100-continue') + line(target, 'Expect: 100-continue'),
  () => `${post('Content-Length: 2', 'Expect: 100-continue')}{}`,
  (target) => line(target, 'Expect: something'),
  () => `${post('Content-Length: 100')}{"add":`,
  () => post(`Content-Length: ${MAX_BODY_BYTES + 1}`) + HIDDEN,
  () => `CONNECT broker:9090 HTTP/1.1\r\nHost: broker:9090\r\n\r\n${HIDDEN}`,
  () => `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
  () => '\x16\x03\x01\x00\xf4\x01\x00\x00\xf0\x03\x03',
  (_, generator) => generator.noise(200),
  (target, generator) => line(target) + generator.noise(50),
]
