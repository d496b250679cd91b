/**
 * `npm run bench:hostile` measures bodies and readers that mean harm: time to answer, the longest stall of the event loop, peak resident memory,
 * beside their bounds. Everything runs twice: as shipped, and with a small heap and a memory limit.
 * Options: `--only WORDS` (scenarios whose name holds them; repeatable), `--flags shipped|small`, `--limit SECONDS` for each line.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { constants, gzipSync } from 'node:zlib'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from '../support/log.ts'
import { type Attack, HOSTILE, validBodies } from './hostile-bodies.ts'
import { WatchedBroker } from './hostile-broker.ts'
import {
  type Answers,
  attack,
  exchange,
  type Hanging,
  head,
  postHead,
  prober,
  type Reply,
  readSlowly,
  TOKENS,
  tally,
  trickle,
} from './hostile-client.ts'
import { HOSTILE_COMPUTE, validCompute } from './hostile-compute.ts'
import { HOSTILE_HEARTBEATS, validHeartbeats } from './hostile-coverage.ts'
import { DENIED_PODS, HOSTILE_DENIALS, validDenials } from './hostile-denials.ts'
import { HOSTILE_PAYLOADS, PAYLOAD_PATH, validPayloads } from './hostile-payloads.ts'
import { HOSTILE_RESULTS, RESULT_IMAGE, validResults } from './hostile-results.ts'
import { HOSTILE_EXECUTABLES, validExecutables } from './hostile-runtime.ts'
import { fillUnions, HOSTILE_SECCOMP, validSeccomp } from './hostile-seccomp.ts'

/** Bounds of an idle machine. */
/** No body, refused or not, holds the event loop longer. */
const LOOP_MS = 200
const PEAK_MIB = 300
/** While payloads of findings and components are read there is a thread with a heap of its own. */
const PAYLOAD_PEAK_MIB = 400
const PAYLOADS = /^(?:findings|components|slow payloads):/
/** While others read or write slowly: a look-up, a small list or a small post takes no longer, and none is refused. */
const SMALL_MS = 1_000
/** And a large list, tried again whenever it is refused, is answered within. */
const LARGE_WITHIN_MS = 30_000

const AT_ONCE = [1, 8, 63]
const SETTLE_MS = 60
/** A broker that does not answer for so long after a line is started again. */
const RECOVER_MS = 3_000
const IDLE_MS = 2_000
const PODS = 20_000
const FLOWS_OF_ONE_POD = 200_000
const SLOW_READERS = 6
const SLOW_BYTES_PER_SECOND = 2_400
const SLOW_POSTERS = 63
/** Slow readers hang for at least so long. */
const HANG_MS = 8_000
const ANSWERED_LARGE_LISTS = 3

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    flags: { type: 'string' },
    limit: { type: 'string', default: '15' },
  },
})
const LIMIT_MS = Number(options.limit) * 1_000
const words = options.only
const wanted = (name: string) => !words || words.some((word) => name.includes(word))

/** Those of the start script. */
const MALLOC = { MALLOC_ARENA_MAX: '2' }
const SETTINGS = [
  { flags: 'shipped', nodeArgs: ['--v8-pool-size=1'], env: MALLOC },
  {
    flags: 'small',
    nodeArgs: ['--max-old-space-size=200', '--v8-pool-size=1'],
    env: { ...MALLOC, BROKER_MEMORY_LIMIT_MB: '256' },
  },
].filter(({ flags }) => !options.flags || options.flags === flags)

const print = (line: string) => process.stdout.write(`${line}\n`)
const ms = (value: number | null) => (value === null ? '?' : value.toFixed(value < 10 ? 1 : 0))

const dataDir = mkdtempSync(join(tmpdir(), 'broker-hostile-'))
const server = await startEmbedded({ dataDir, log: noLog })
process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }))

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await broker?.kill()
    await server.stop()
    process.exit(1)
  })
}

let held = 0
let lines = 0
let longest: { name: string; loop: number } = { name: 'none', loop: 0 }
let broker!: WatchedBroker
let settings!: (typeof SETTINGS)[number]

async function start(): Promise<void> {
  broker = await new WatchedBroker(settings.nodeArgs, { ...settings.env, ...TOKENS, DATABASE_URL: server.url }).start()
  await exchange(broker.port, [head('GET', '/version')], LIMIT_MS)
  await delay(SETTLE_MS)
}

/** After a line: alive and answering, or started again. `silent`: it still has work that nobody waits for. */
async function recover(silent = false): Promise<void> {
  if (
    !silent &&
    broker.end === null &&
    (await exchange(broker.port, [head('GET', '/version')], RECOVER_MS)).status === '200'
  )
    return
  print(`  the broker is started again: ${broker.end ?? 'it did not answer in time'}`)
  await broker.kill()
  await start()
}

interface Line {
  name: string
  how: string
  answers: Answers
  /** What is wrong beside the figures. */
  faults: string[]
}

interface Figures {
  loop: number | null
  peak: number
}

/** Of the broker since `begin`. */
async function figures(): Promise<Figures> {
  await delay(SETTLE_MS)
  return { loop: await broker.loopMs(LIMIT_MS), peak: broker.peakMib() }
}

function report({ name, how, answers, faults }: Line, { loop, peak }: Figures): void {
  if (broker.end !== null) faults.push(`died: ${broker.end}`)
  else if (loop === null) faults.push('the loop stands still')
  if (loop !== null && loop > LOOP_MS) faults.push(`loop over ${LOOP_MS} ms`)
  const peakBoundMib = PAYLOADS.test(name) ? PAYLOAD_PEAK_MIB : PEAK_MIB
  if (peak > peakBoundMib) faults.push(`over ${peakBoundMib} MiB`)
  lines++
  if (loop !== null && loop > longest.loop) longest = { name: `${name}, ${how}`, loop }
  if (faults.length === 0) held++
  const statuses = [...answers.statuses].map(([status, count]) => `${count} x ${status}`).join(', ')
  const cells = [
    settings.flags.padEnd(7),
    name.padEnd(32),
    how.padEnd(9),
    statuses.padEnd(22),
    ms(answers.firstMs).padStart(8),
    ms(answers.slowestMs).padStart(10),
    ms(loop).padStart(8),
    (peak ? peak.toFixed(0) : '?').padStart(8),
    faults.length === 0 ? 'held' : `NOT held: ${faults.join('; ')}`,
  ]
  print(`| ${cells.join(' | ')} |`)
}

/** From here on the figures are those of the next line. */
async function begin(): Promise<void> {
  await broker.loopMs(LIMIT_MS)
  broker.resetPeak()
}

const RIGHT = { refused: /^(4\d\d|503)$/, valid: /^(20[01]|503)$/, either: /^(20[01]|4\d\d|503)$/ }

async function body(one: Attack): Promise<void> {
  const { name, expected, isPackedOnly = false, isPlainOnly = false, body } = one
  if (!wanted(name)) return
  const rendered: { plain: Buffer; packed: Buffer }[] = []
  const same = expected !== 'valid'
  for (const gzip of isPackedOnly ? [true] : isPlainOnly ? [false] : [false, true]) {
    for (const count of AT_ONCE) {
      while (rendered.length < (same ? 1 : count)) {
        const plain = Buffer.from(body(rendered.length))
        rendered.push({
          plain,
          packed: gzipSync(plain, { level: isPackedOnly ? constants.Z_DEFAULT_COMPRESSION : constants.Z_BEST_SPEED }),
        })
      }
      const bodies = Array.from({ length: count }, (_, i) => rendered[same ? 0 : i]![gzip ? 'packed' : 'plain'])
      await begin()
      const answers = await attack(broker.port, one, bodies, gzip, LIMIT_MS)
      const wrong = [...answers.statuses.keys()].filter((status) => !RIGHT[expected].test(status))
      const how = `${gzip ? 'gzip ' : 'plain'} ${count}`
      const faults = wrong.length > 0 ? [`answered ${wrong.join(', ')}`] : []
      report({ name, how, answers, faults }, await figures())
      await recover(answers.statuses.has('silent'))
    }
  }
}

const smallPost = Buffer.from(
  '{"pod_name":"small","pod_ip":"10.203.0.1","pod_namespace":"hostile","node_name":"node-h","is_dead":false,"time_stamp":"2026-01-01T00:00:00"}',
)

/** What others meet while some hang: a line each. `large` is asked until it was answered often enough, or it is too late. */
async function meanwhile(name: string, hang: () => Hanging, large: string | null): Promise<void> {
  if (!wanted(name)) return
  await begin()
  const { port } = broker
  const hanging = hang()
  const startedAt = performance.now()
  await delay(500)
  const probes: [label: string, probe: ReturnType<typeof prober>][] = [
    ['look-up', prober(port, [head('GET', '/pod/name/checkout-1')], 100, LIMIT_MS)],
    ['list', prober(port, [head('GET', '/pod/traffic?limit=10')], 100, LIMIT_MS)],
    ['post', prober(port, [postHead('/pod/spec', smallPost.length, false), smallPost], 100, LIMIT_MS)],
  ]
  const lists = large ? prober(port, [head('GET', large)], 500, LIMIT_MS) : null
  const answered = () => lists?.replies.filter(({ status }) => status === '200') ?? []
  const passed = () => performance.now() - startedAt
  while (passed() < HANG_MS || (lists && answered().length < ANSWERED_LARGE_LISTS && passed() < LARGE_WITHIN_MS))
    await delay(100)
  const still = hanging.open
  const replies = await Promise.all(probes.map(async ([label, probe]) => [label, await probe.stop()] as const))
  const largeReplies = (await lists?.stop()) ?? []
  hanging.stop()
  const all = await figures()
  print(`  ${name}: ${still} still connected after ${(passed() / 1_000).toFixed(0)} s`)
  const line = (how: string, sent: Reply[], faults: string[]) =>
    report({ name, how, answers: tally(sent), faults }, all)
  for (const [label, sent] of replies) {
    const refused = sent.filter(({ status }) => status !== '200').length
    const slow = sent.filter((reply) => reply.ms > SMALL_MS).length
    const faults = refused ? [`${refused} of ${sent.length} not 200`] : []
    if (slow) faults.push(`${slow} of ${sent.length} over ${SMALL_MS} ms`)
    line(label, sent, faults)
  }
  if (large !== null) {
    const first = answered()[0]
    line('large', largeReplies, first ? [] : [`no large list within ${LARGE_WITHIN_MS / 1_000} s`])
    if (first)
      print(`  ${name}: the first large list was answered after ${((first.at + first.ms) / 1_000).toFixed(1)} s`)
  }
  await recover()
}

/** Many at once that read a list and take it. */
async function readers(name: string, path: string): Promise<void> {
  if (!wanted(name)) return
  for (const count of AT_ONCE) {
    await begin()
    const answers = tally(
      await Promise.all(Array.from({ length: count }, () => exchange(broker.port, [head('GET', path)], LIMIT_MS))),
    )
    const wrong = [...answers.statuses.keys()].filter((status) => !RIGHT.valid.test(status))
    const faults = wrong.length > 0 ? [`answered ${wrong.join(', ')}`] : []
    report({ name, how: `read ${count}`, answers, faults }, await figures())
    await recover(answers.statuses.has('silent'))
  }
}

async function slowReaders(path: string, what: string): Promise<void> {
  await meanwhile(
    `slow readers: ${what}`,
    () => {
      const slow = readSlowly(broker.port, path, SLOW_READERS, SLOW_BYTES_PER_SECOND)
      const stuck = readSlowly(broker.port, path, 1, 0)
      const stop = () => {
        slow.stop()
        stuck.stop()
      }
      return {
        get open() {
          return slow.open + stuck.open
        },
        stop,
      }
    },
    '/pod/traffic?limit=20000',
  )
}

async function idle(): Promise<void> {
  await begin()
  await delay(IDLE_MS)
  const answers = await attack(broker.port, { path: '/pod/spec' }, [smallPost], false, LIMIT_MS)
  report({ name: '(nothing; one small post)', how: '', answers, faults: [] }, await figures())
}

async function fill(): Promise<void> {
  await migrate({ connection: server.url, log: noLog })
  const sql = openPool(server.url, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, pod_obj, time_stamp, node_name, is_dead, pod_ips)
    select 'checkout-' || i, '10.' || 100 + i / 62500 || '.' || i / 250 % 250 || '.' || i % 250, 'shop',
           json_build_object('metadata', json_build_object('name', 'checkout-' || i, 'annotations', json_build_object('checksum', repeat('a', 500)))),
           now() at time zone 'utc', 'node-' || i / 100, false, array['10.' || 100 + i / 62500 || '.' || i / 250 % 250 || '.' || i % 250]
    from generate_series(1, ${PODS}::int) i`
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip,
                         traffic_in_out_port, decision, time_stamp)
    select '00000000-0000-4000-9000-' || lpad(i::text, 12, '0'), 'large', 'shop', '10.99.0.1', '0', 'TCP', 'EGRESS',
           '10.98.' || i / 250 % 250 || '.' || i % 250, i::text, 'ALLOW', now() at time zone 'utc' - i * interval '1 millisecond'
    from generate_series(1, ${FLOWS_OF_ONE_POD}::int) i`
  await sql`insert into image values (${RESULT_IMAGE}, null, '{}', 'repo', now() at time zone 'utc', now() at time zone 'utc')`
  await fillUnions(sql)
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind, workload_name)
    select 'denied-' || i - 1, '', 'hostile', now() at time zone 'utc', 'node-h', false, '{}', 'Deployment', 'workload-' || i
    from generate_series(1, ${DENIED_PODS}::int) i`
  await sql`analyze`
  await sql.end({ timeout: 1 })
}

const startedAt = performance.now()
await fill()
print(
  `Node ${process.version}, ${process.platform}, load ${loadavg()[0]!.toFixed(1)}, ${new Date().toISOString().slice(0, 10)}`,
)
print(
  `bounds: the event loop stands still for ${LOOP_MS} ms at most (idle machine); ${PEAK_MIB} MiB, ${PAYLOAD_PEAK_MIB} MiB with payloads of findings and components; small requests beside slow clients ${SMALL_MS} ms`,
)
print(
  `| flags   | ${'body'.padEnd(32)} | how       | answers                | first ms | slowest ms |  loop ms | peak MiB | |`,
)
print(
  `|---------|${'-'.repeat(34)}|-----------|------------------------|---------:|-----------:|---------:|---------:|---|`,
)
for (settings of SETTINGS) {
  await start()
  await idle()
  for (const one of [
    ...HOSTILE,
    ...HOSTILE_PAYLOADS,
    ...HOSTILE_RESULTS,
    ...HOSTILE_SECCOMP,
    ...HOSTILE_DENIALS,
    ...HOSTILE_EXECUTABLES,
    ...HOSTILE_HEARTBEATS,
    ...HOSTILE_COMPUTE,
  ])
    await body(one)
  const run = Math.floor(Math.random() * 0xffff_ffff)
  const name = run.toString(16).padStart(8, '0')
  const valid = [
    ...validBodies(name),
    ...validPayloads(name),
    ...validResults(),
    ...validSeccomp(),
    ...validDenials(name),
    ...validExecutables(name),
    ...validHeartbeats(name),
    ...validCompute(name),
  ]
  for (const one of valid) await body(one)
  // After that as many series and rows are there as there may be.
  await readers('denials: metrics of 10 000 series', '/metrics')
  await readers('denials: the newest 500', '/seccomp/denials?limit=500')
  await readers('denials: of a kind that has none', '/seccomp/denials?limit=500&kind=none')
  await meanwhile(
    'slow bodies: 63 posters',
    () => trickle(broker.port, '/pod/traffic/batch', SLOW_POSTERS, 2_000_000, 1_000),
    null,
  )
  await meanwhile(
    'slow payloads: 63 posters',
    () => trickle(broker.port, PAYLOAD_PATH, SLOW_POSTERS, 1_000_000, 1_000),
    null,
  )
  await slowReaders('/pod/traffic?limit=20000', 'newest 20 000')
  await slowReaders('/pod/traffic/large', '200 000 of a pod')
  await slowReaders('/pod/info', '20 000 pods')
  await broker.kill('SIGTERM')
}
print(`the longest stall: ${longest.loop.toFixed(0)} ms (${longest.name})`)
print(`${held} of ${lines} lines held, in ${((performance.now() - startedAt) / 60_000).toFixed(1)} min`)
await server.stop()
