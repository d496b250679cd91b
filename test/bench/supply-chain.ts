/**
 * `npm run bench:supply-chain`: a million findings of 500 images posted as the real component does, then passes of the job and every
 * read of them, beside the numbers to hold. Client, broker and PostgreSQL share the machine. Options: `--images 500`,
 * `--findings 2000` (rows an image), `--workloads 2000`, `--seconds 3` a read, `--only name,name` of the reads.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from '../support/log.ts'
import { type Measured, run } from './client.ts'
import { type Loop, refresh, SupplyChainBroker, TOKENS } from './supply-chain-broker.ts'
import { at, Dataset, imageDigest, namespaceName, PODS_PER_WORKLOAD } from './supply-chain-dataset.ts'

const { values: options } = parseArgs({
  options: {
    images: { type: 'string', default: '500' },
    findings: { type: 'string', default: '2000' },
    workloads: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '3' },
    only: { type: 'string' },
  },
})
const FOR_MS = Number(options.seconds) * 1_000
const WHOLE_MS = 3_600_000
/** As many as the component has. */
const SENDERS = 3
const NAMESPACES = 60
const FLOWS_PER_WORKLOAD = 40
const SBOM_COMPONENTS = 10_000
/** Components of an SBOM, one for each tenth image. */
const SMALL_SBOM_COMPONENTS = 500
/** Widths of columns. */
const NAME = 60
const HOLD = 24
const LOOP_P99_MS = 20
const PEAK_MIB = 400

const data = new Dataset({
  images: Number(options.images),
  findings: Number(options.findings),
  workloads: Number(options.workloads),
  namespaces: NAMESPACES,
})
const { images, workloads } = data.scale
const only = options.only?.split(',')
const print = (line: string) => process.stdout.write(`${line}\n`)
const compress = promisify(gzip)

const dataDir = mkdtempSync(join(tmpdir(), 'broker-supply-chain-'))
process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }))
const server = await startEmbedded({ dataDir, log: noLog })
await migrate({ connection: server.options, log: noLog })
const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
const broker = await SupplyChainBroker.start(server.url)
const { port } = broker

const cell = (text: string, width: number) => text.padStart(width)
const whole = (n: number) => Math.round(n).toLocaleString('en').replaceAll(',', ' ')

function row(name: string, figure: string, hold: string, measured?: Measured, loop?: Loop, peakMib?: number): void {
  const ms = (value: number | undefined) => (value === undefined ? '' : value.toFixed(2))
  const cells = [
    name.padEnd(NAME),
    cell(figure, 26),
    cell(hold, HOLD),
    cell(ms(measured?.p50Ms), 9),
    cell(ms(measured?.p99Ms), 9),
    cell(measured ? String(measured.failed) : '', 6),
    cell(ms(loop?.p99Ms), 12),
    cell(ms(loop?.maxMs), 12),
    cell(peakMib?.toFixed(0) ?? '', 8),
  ]
  print(`| ${cells.join(' | ')} |`)
}

function request(
  method: string,
  path: string,
  token: string,
  body: Uint8Array = Buffer.alloc(0),
  encoding?: string,
): Buffer {
  const headers = [`${method} ${path} HTTP/1.1`, 'host: broker', `authorization: Bearer ${token}`]
  if (method === 'POST') headers.push('content-type: application/json', `content-length: ${body.length}`)
  if (encoding) headers.push(`content-encoding: ${encoding}`)
  return Buffer.concat([Buffer.from(`${headers.join('\r\n')}\r\n\r\n`), body])
}
const get = (path: string) => request('GET', path, TOKENS.BROKER_TOKEN_READ)
const postPlain = (path: string, body: string) => request('POST', path, TOKENS.BROKER_TOKEN_INGEST, Buffer.from(body))
const postReport = async (digest: string, kind: 'vulnerabilities' | 'sbom', body: string) =>
  request('POST', `/images/${digest}/${kind}`, TOKENS.BROKER_TOKEN_SUPPLYCHAIN, await compress(body), 'gzip')

/** What a read answers. */
async function ask<T>(path: string): Promise<T> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` },
  })
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}

/** Everything once, untimed; what fails ends the benchmark. */
async function send(count: number, connections: number, bodyOf: (i: number) => Buffer): Promise<void> {
  const { failed } = await run({ port, connections, forMs: WHOLE_MS, request: (i) => (i < count ? bodyOf(i) : null) })
  if (failed > 0) throw new Error(`${failed} of ${count} posts failed`)
}

/** Posts each body once, as the component does, and tells how it went. */
async function ingest(name: string, bodies: readonly Buffer[], rows: number): Promise<void> {
  await broker.loop()
  broker.peakMib()
  const measured = await run({ port, connections: SENDERS, forMs: WHOLE_MS, request: (i) => bodies[i] ?? null })
  const figure = `${(measured.calls / measured.seconds).toFixed(1)}/s${rows > 0 ? `, ${whole(rows / measured.seconds)} rows/s` : ''}`
  row(name, figure, `loop < ${LOOP_P99_MS} ms, < ${PEAK_MIB} MiB`, measured, await broker.loop(), broker.peakMib())
}

async function pass(name: string, hold: string): Promise<void> {
  const { durationMs, rows, batches, outcome } = await refresh(server.url)
  const [size] = await sql<{ n: string }[]>`select count(*) as n from cve_summary`
  row(`supply-chain-refresh: ${name}`, `${(durationMs / 1_000).toFixed(2)} s`, hold)
  print(`  ${outcome}, ${rows} rows in ${batches} batches; the summary has ${size!.n} rows`)
}

/** One client that asks for paths in turn. */
async function read(name: string, holdP99Ms: number | null, path: (i: number) => string): Promise<void> {
  if (only && !only.some((word) => name.includes(word))) return
  const load = { port, connections: 1, request: (i: number) => get(path(i)) }
  await run({ ...load, forMs: FOR_MS / 4 })
  await broker.loop()
  broker.peakMib()
  const measured = await run({ ...load, forMs: FOR_MS })
  const rate = `${whole(measured.calls / measured.seconds)}/s`
  row(name, rate, holdP99Ms === null ? '' : `p99 < ${holdP99Ms} ms`, measured, await broker.loop(), broker.peakMib())
}

/** The page in the middle of a list and its last one. */
async function pagesOf(path: string): Promise<{ middle: string; last: string; pages: number }> {
  const after: string[] = []
  for (;;) {
    const { nextAfter } = await ask<{ nextAfter: string | null }>(
      after.length === 0 ? path : `${path}&after=${after.at(-1)}`,
    )
    if (nextAfter === null) break
    after.push(encodeURIComponent(nextAfter))
  }
  const page = (cursor: string | undefined) => (cursor === undefined ? path : `${path}&after=${cursor}`)
  return { middle: page(after[after.length >> 1]), last: page(after.at(-1)), pages: after.length + 1 }
}

async function reads(): Promise<void> {
  const digestOf = (i: number) => imageDigest((i * 7) % images)
  const findings = (filter: string) => (i: number) => `/images/${digestOf(i)}/vulnerabilities?limit=100${filter}`
  await read('image vulnerabilities, first page', 30, findings(''))
  await read('image vulnerabilities, first page of 500', 30, (i) => `/images/${digestOf(i)}/vulnerabilities?limit=500`)
  // Of images with both sources, so that findings are merged all the way down.
  const deep: string[] = []
  for (let i = 0; i < Math.min(10, images / 2); i++) {
    const digest = imageDigest(i * 2)
    const { middle, last } = await pagesOf(`/images/${digest}/vulnerabilities?limit=100`)
    deep.push(middle, last)
  }
  await read('image vulnerabilities, deep pages', 30, (i) => deep[i % deep.length]!)
  await read('image vulnerabilities, CRITICAL and HIGH', 30, findings('&severity=CRITICAL,HIGH'))
  await read('image vulnerabilities, UNKNOWN and fixable', 30, findings('&severity=UNKNOWN&fixable=true'))
  await read('image vulnerabilities, of the matcher', 30, findings('&source=db-matcher'))

  const lists: [name: string, filter: string][] = [
    ['', ''],
    [', severity=LOW', '&severity=LOW'],
    [', fixable', '&fixable=true'],
    [', running', '&running=true'],
    [', of a namespace', `&namespace=${namespaceName(7)}`],
    [', of a namespace, fixable, running', `&namespace=${namespaceName(7)}&fixable=true&running=true`],
    [', LOW, not fixable, running', '&severity=LOW&fixable=false&running=true'],
  ]
  for (const [name, filter] of lists) {
    const list = `/vulnerabilities?limit=100${filter}`
    const { middle, last, pages } = await pagesOf(list)
    await read(`/vulnerabilities${name}, first page`, 10, () => list)
    await read(`/vulnerabilities${name}, page ${(pages >> 1) + 1}`, 10, () => middle)
    await read(`/vulnerabilities${name}, page ${pages}`, 10, () => last)
  }

  await read('exposure, two fifths of the images', 300, (i) => `/vulnerabilities/${data.band(i)}/exposure`)
  await read('exposure, 720 hours', 300, (i) => `/vulnerabilities/${data.band(i)}/exposure?window_hours=720`)
  const sbom = `/images/${imageDigest(0)}/sbom`
  await read('SBOM, first page', 30, () => `${sbom}?limit=100`)
  await read(
    `SBOM, last page of ${SBOM_COMPONENTS} components`,
    30,
    () => `${sbom}?limit=500&after=${SBOM_COMPONENTS - 500}`,
  )
  await read(`CycloneDX of ${SBOM_COMPONENTS} components`, null, () => `${sbom}/cyclonedx`)
}

try {
  const [version] = await sql<{ server_version: string }[]>`show server_version`
  const machine = `${cpus().length} x ${cpus()[0]!.model}, load ${loadavg()[0]!.toFixed(1)}, PostgreSQL ${version!.server_version}, Node ${process.version}`
  print(`${machine}, ${FOR_MS / 1_000} s a read, ${new Date().toISOString().slice(0, 10)}`)
  print(
    `| ${'what'.padEnd(NAME)} | ${cell('figure', 26)} | ${cell('hold', HOLD)} |    p50 ms |    p99 ms | failed | loop p99 ms | loop max ms | peak MiB |`,
  )
  print(
    `|${'-'.repeat(NAME + 2)}|${'-:|'.padStart(29, '-')}${'-:|'.padStart(HOLD + 3, '-')}----------:|----------:|-------:|-------------:|-------------:|---------:|`,
  )

  const firstBodies: Buffer[] = []
  let rows = 0
  for (let image = 0; image < images; image++) {
    for (const payload of data.payloads(image, { number: 0, at: at(-3_600) })) {
      firstBodies.push(await postReport(imageDigest(image), 'vulnerabilities', payload.body))
      rows += payload.rows
    }
  }
  const wireMib = firstBodies.reduce((sum, { length }) => sum + length, 0) / 1_048_576
  const sboms: Buffer[] = []
  for (let image = 0; image < images; image += 10) {
    sboms.push(
      await postReport(
        imageDigest(image),
        'sbom',
        data.sbom(image, image === 0 ? SBOM_COMPONENTS : SMALL_SBOM_COMPONENTS),
      ),
    )
  }
  print(
    `  ${firstBodies.length} payloads, ${whole(rows)} findings, ${data.cves} vulnerabilities, ${wireMib.toFixed(0)} MiB compressed`,
  )

  await send(workloads * PODS_PER_WORKLOAD, 8, (i) =>
    postPlain('/pod/spec', data.pod(Math.floor(i / PODS_PER_WORKLOAD), i % PODS_PER_WORKLOAD)),
  )
  await send(workloads, 8, (i) => postPlain('/pod/traffic/batch', data.flows(i, FLOWS_PER_WORKLOAD)))

  await ingest('POST vulnerabilities, all new', firstBodies, rows)
  await ingest('POST sbom, all new', sboms, 0)

  await pass('first full pass', '')
  await sql.unsafe('vacuum (analyze)')
  await pass('nothing changed', '')
  const changed = await Promise.all(
    data
      .payloads(1, { number: 1, at: at(-1_800) })
      .map(({ body }) => postReport(imageDigest(1), 'vulnerabilities', body)),
  )
  await send(changed.length, 1, (i) => changed[i]!)
  await pass('one image has other findings', '< 2 s')
  await send(PODS_PER_WORKLOAD, 1, (n) => postPlain('/pod/spec', data.pod(2, n, 3 % images)))
  await pass('one workload runs another image', '')
  const header = await Promise.all(
    data
      .payloads(1, { number: 1, at: at(-900) })
      .map(({ body }) => postReport(imageDigest(1), 'vulnerabilities', body)),
  )
  await send(header.length, 1, (i) => header[i]!)
  await pass('one image was scanned again, the same', '')

  await reads()

  // Not the one that has changed since, which would be stale.
  await ingest('POST vulnerabilities, all unchanged', firstBodies, 0)
  await pass('all were posted again unchanged', '')
  const again: Buffer[] = []
  let rowsAgain = 0
  for (let image = 0; image < images; image += 5) {
    for (const payload of data.payloads(image, { number: 2, at: at(-600) })) {
      again.push(await postReport(imageDigest(image), 'vulnerabilities', payload.body))
      rowsAgain += payload.rows
    }
  }
  await ingest('POST vulnerabilities, a hundredth changed', again, rowsAgain)
  await pass('a fifth of the images changed', '')
  const sizes = await sql<{ name: string; size: string }[]>`
    select relname as name, pg_size_pretty(pg_total_relation_size(relid)) as size
    from pg_stat_user_tables order by pg_total_relation_size(relid) desc limit 6`
  print(`  ${sizes.map(({ name, size }) => `${name} ${size}`).join(', ')}`)
} finally {
  await broker.stop()
  await sql.end({ timeout: 1 })
  await server.stop()
}
