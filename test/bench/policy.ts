/**
 * `npm run bench:policy`: admission policies of 5 000 running containers, of few images and of many, with results as they are and as
 * large as the ingest stores them, beside the numbers to hold. Client, broker and PostgreSQL share the machine. Options: `--times 5` a
 * format, `--only name,name` of the states.
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from '../support/log.ts'
import { SupplyChainBroker, TOKENS } from './supply-chain-broker.ts'

const { values: options } = parseArgs({
  options: { times: { type: 'string', default: '5' }, only: { type: 'string' } },
})

const CONTAINERS = 5_000
const FORMATS = ['policy-engine-a', 'policy-engine-b', 'native']
const HOLD_MS = 2_000
const HOLD_LOOP_MS = 100
const HOLD_MIB = 400
/** Of the body of a result. */
const MAX_RESULT_BYTES = 256 * 1024
const V1 = 'https://slsa.dev/provenance/v1'

const print = (line: string) => process.stdout.write(`${line}\n`)
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const dataDir = mkdtempSync(join(tmpdir(), 'broker-policy-'))
process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }))
const server = await startEmbedded({ dataDir, log: noLog })
await migrate({ connection: server.options, log: noLog })
const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })

interface Image {
  repository: string
  signatures: object[]
  attestations: object[]
}

const keyless = (san: string) => ({
  format: 'cosign-bundle',
  source: 'referrers',
  verified: true,
  signerKind: 'keyless',
  issuer: 'https://token.actions.githubusercontent.com',
  san,
})
const attested = (san: string, predicateType: string) => ({ ...keyless(san), format: 'bundle', predicateType })
const provenance = (san: string, repository: string) => ({
  ...attested(san, V1),
  provenance: {
    builderId: 'https://github.com/actions/runner',
    sourceRepo: `https://git.test/${repository}`,
    sourceCommit: sha256(san),
    sourceRef: 'refs/tags/v1',
  },
})

/** As images are signed: once or twice, with an SBOM and provenance attached. */
function usual(repository: string, n: number): Image {
  const workflow = `https://github.com/team/${repository.split('/').at(-1)}/.github/workflows/release.yml`
  const san = `${workflow}@refs/tags/v1.${n}`
  return {
    repository,
    signatures: n % 2 === 0 ? [keyless(san)] : [keyless(san), keyless(`${workflow}@refs/heads/main`)],
    attestations: [provenance(san, repository), attested(san, 'https://spdx.dev/Document')],
  }
}

/** As large as a result may be: 32 signatures and 64 attestations, by `signer(i)`. */
function largest(repository: string, signer: (i: number) => string): Image {
  const padding = 'x'.repeat(900)
  const one = {
    signatures: Array.from({ length: 32 }, (_, i) => keyless(`${signer(i)}/${padding}`)),
    attestations: [] as object[],
  }
  const room = MAX_RESULT_BYTES - JSON.stringify(one).length
  const each = Math.floor(room / 64) - JSON.stringify(attested(`${signer(0)}/${padding}`, V1)).length - 100
  one.attestations = Array.from({ length: 64 }, (_, i) => ({
    ...attested(`${signer(i % 32)}/${padding}`, V1),
    provenance: { builderId: 'b'.repeat(Math.max(1, Math.min(1_024, each))) },
  }))
  return { repository, ...one }
}

/** Makes so many containers run images, container by container in turn. */
async function run(images: readonly Image[]): Promise<void> {
  await sql`truncate image, workload_container, image_attestation`
  const digests = images.map((_, n) => `sha256:${sha256(`image-${n}`)}`)
  for (let at = 0; at < images.length; ) {
    const rows: object[] = []
    for (let bytes = 0; at < images.length && bytes < 16 * 1024 * 1024; at++) {
      const { repository, ...lists } = images[at]!
      const [signatures, attestations] = [JSON.stringify(lists.signatures), JSON.stringify(lists.attestations)]
      bytes += signatures.length + attestations.length
      rows.push({ digest: digests[at], repository, signatures, attestations })
    }
    await sql`
      with r as materialized (
        select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as (digest text, repository text, signatures text, attestations text)),
      i as (insert into image select digest, repository, '{v1}', 'repo', now(), now() from r)
      insert into image_attestation
      select digest, repository, 'verified', null, 'public-good', 'self', null, '[]', '[]', signatures, attestations, '[]', '[]', '', now(), now()
      from r`
  }
  const containers = Array.from({ length: CONTAINERS }, (_, n) => {
    const k = n % images.length
    return { namespace: `ns-${n % 50}`, name: `web-${n}`, digest: digests[k], reference: `${images[k]!.repository}:v1` }
  })
  await sql`
    insert into workload_container
    select 'primary', namespace, 'Deployment', name, 'app', digest, 'regular', reference, '{}', '{}', null, null, 'running', null, now() at time zone 'utc', now() at time zone 'utc'
    from json_to_recordset(${JSON.stringify(containers)}::text::json) as (namespace text, name text, digest text, reference text)`
  await sql.unsafe('analyze')
}

const repositories = (count: number, host = 'registry.test/team') =>
  Array.from({ length: count }, (_, n) => `${host}/app-${n}`)
const many = (images: number, of: readonly string[], image: (repository: string, n: number) => Image) =>
  Array.from({ length: images }, (_, n) => image(of[n % of.length]!, n))

const states: [name: string, images: () => readonly Image[]][] = [
  ['500 images of 200 repositories', () => many(500, repositories(200), usual)],
  ['5 000 images of 200 repositories', () => many(5_000, repositories(200), usual)],
  ['5 000 images of 5 000 repositories', () => many(5_000, repositories(5_000), usual)],
  [
    '5 000 repositories of Docker Hub, one signer',
    () => many(5_000, repositories(5_000, 'docker.io/library'), (repository) => ({ ...usual('r/app', 0), repository })),
  ],
  [
    '1 repository, 5 000 images, a signer each',
    () => many(5_000, repositories(1), (repository, n) => ({ ...usual(`r/app-${n}`, 0), repository })),
  ],
  [
    'largest results, 32 signers in all',
    () => many(5_000, repositories(5_000), (repository) => largest(repository, (i) => `https://ci.test/${i}`)),
  ],
  [
    'largest results, each of other signers',
    () =>
      many(5_000, repositories(5_000), (repository) =>
        largest(repository, (i) => `https://ci.test/${repository}/${i}`),
      ),
  ],
  [
    '1 repository, 5 000 images, 8 small signers each',
    () =>
      many(5_000, repositories(1), (repository, n) => ({
        repository,
        signatures: Array.from({ length: 8 }, (_, i) => keyless(`${n}-${i}`)),
        attestations: [attested(`${n}-0`, V1)],
      })),
  ],
  [
    '32 small signers an image, all others',
    () =>
      many(5_000, repositories(1), (repository, n) => ({
        repository,
        signatures: Array.from({ length: 32 }, (_, i) => keyless(`${n}-${i}`)),
        attestations: [],
      })),
  ],
]

const cell = (text: string, width: number) => text.padStart(width)
const NAME = 62

async function measure(name: string, broker: SupplyChainBroker): Promise<void> {
  for (const format of FORMATS) {
    await broker.loop()
    broker.peakMib()
    const times: number[] = []
    let answered = ''
    for (let i = 0; i < Number(options.times); i++) {
      const startedAt = performance.now()
      const headers = { authorization: `Bearer ${TOKENS.BROKER_TOKEN_READ}` }
      const answer = await fetch(`http://127.0.0.1:${broker.port}/attestations/policy?format=${format}`, { headers })
      const { byteLength } = await answer.arrayBuffer()
      times.push(performance.now() - startedAt)
      answered = `${answer.status}, ${(byteLength / 1_048_576).toFixed(2)} MiB`
    }
    const loop = await broker.loop()
    const cells = [
      `${name}, ${format}`.padEnd(NAME),
      cell(answered, 14),
      cell(Math.min(...times).toFixed(0), 8),
      cell(Math.max(...times).toFixed(0), 8),
      cell(loop.p99Ms.toFixed(1), 11),
      cell(loop.maxMs.toFixed(1), 11),
      cell(broker.peakMib().toFixed(0), 8),
    ]
    print(`| ${cells.join(' | ')} |`)
  }
}

try {
  const [version] = await sql<{ server_version: string }[]>`show server_version`
  print(
    `${cpus().length} x ${cpus()[0]!.model}, load ${loadavg()[0]!.toFixed(1)}, PostgreSQL ${version!.server_version}, Node ${process.version}, ${options.times} times each, ${new Date().toISOString().slice(0, 10)}`,
  )
  print(
    `To hold: an answer of usual results within ${HOLD_MS} ms, the event loop ${HOLD_LOOP_MS} ms, ${HOLD_MIB} MiB at all.`,
  )
  print(
    `| ${'what'.padEnd(NAME)} | ${cell('answer', 14)} |   min ms |   max ms | loop p99 ms | loop max ms | peak MiB |`,
  )
  print(
    `|${'-'.repeat(NAME + 2)}|${'-:|'.padStart(17, '-')}---------:|---------:|------------:|------------:|---------:|`,
  )
  const only = options.only?.split(',')
  for (const [name, images] of states) {
    if (only && !only.some((word) => name.includes(word))) continue
    await run(images())
    // A process of its own for each: what one state left is nobody else's.
    const broker = await SupplyChainBroker.start(server.url)
    try {
      await measure(name, broker)
    } finally {
      await broker.stop()
    }
  }
} finally {
  await sql.end({ timeout: 1 })
  await server.stop()
}
