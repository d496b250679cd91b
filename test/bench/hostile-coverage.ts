/** Posts of heartbeats that cost more than they look, and the fullest that are allowed: 4 MiB of 5 000 entries. */
import { type Attack, fixed } from './hostile-bodies.ts'

const COVERAGE = '/runtime/coverage'
const MAX_BYTES = 4 * 1024 * 1024
const MAX_ENTRIES = 5_000
const DIGEST = `sha256:${'a'.repeat(64)}`

const list = (count: number, entry: (i: number) => string) =>
  `[${Array.from({ length: count }, (_, i) => entry(i)).join(',')}]`
/** An array nested as deep as it goes. */
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
/** The n-th second of 2026, with all the digits that a time may have. */
const second = (n: number) => `${new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString().slice(0, 19)}.123456789`

/** An entry with all its keys; `fields` are more of them. */
const heartbeat = (id: string, { workload = 'w', at = 0, fields = '' } = {}) =>
  `{"pod_namespace":"hostile","pod_name":"${workload}-0","workload_kind":"Deployment","workload_name":"${workload}","container_name":"c","image_digest":"${DIGEST}","container_id":"${id}","node_name":"n","mode":"full","exec_probe":true,"lib_probe":true,"start_mode":"start","tracking_since":"${second(0)}","probe_attached_at":"${second(0)}","events_dropped":1,"unsent":1,"incomplete":true,"ended":false,"heartbeat_at":"${second(at)}","heartbeat_secs":300${fields}}`

const either = (name: string, body: () => string) => fixed(`heartbeats: ${name}`, COVERAGE, 'either', body)
const refused = (name: string, body: () => string) => fixed(`heartbeats: ${name}`, COVERAGE, 'refused', body)

export const HOSTILE_HEARTBEATS: Attack[] = [
  refused('4 MiB of zeros', () => list(2_000_000, () => '0')),
  refused('4 MiB of {}', () => list(1_390_000, () => '{}')),
  refused('5 001 of {}, and 4 MiB of blanks', () => list(MAX_ENTRIES + 1, () => '{}').padEnd(MAX_BYTES)),
  refused('another key in each of 100 000', () => `[{"x":${list(60_000, (i) => `{"k${i}":0}`)}}]`),
  refused('nested deep', () => `[${nested(2_000_000)}]`),
  either('nested as deep as it may be', () => `[${nested(32_000)}]`),
  either('4 MiB of blanks', () => '[]'.padStart(MAX_BYTES)),
  either('5 000 of {}', () => list(MAX_ENTRIES, () => '{}')),
  either('5 000 of other keys', () => list(MAX_ENTRIES, (i) => `{"${String(i).padEnd(800, 'k')}":0}`)),
  either('20 other keys in each of 4 000', () =>
    list(4_000, (i) => `{${Array.from({ length: 20 }, (_, k) => `"k${i}_${k}":${k}`).join(',')}}`),
  ),
  either('one name of 4 MiB', () => `[${heartbeat('a', { workload: 'n'.repeat(MAX_BYTES / 2 - 500) })}]`),
  either('one name of 4 MiB of blanks', () => `[${heartbeat('a', { workload: ' '.repeat(MAX_BYTES / 2 - 500) })}]`),
  either('one id of 4 MiB of digits', () => `[${heartbeat('1'.repeat(MAX_BYTES - 700))}]`),
  either(
    'one number of 4 MiB',
    () => `[${heartbeat('a').replace('"unsent":1', `"unsent":1${'0'.repeat(MAX_BYTES - 700)}`)}]`,
  ),
  either(
    'one time of 4 MiB',
    () => `[${heartbeat('a').replace('"heartbeat_at":"', `"heartbeat_at":"${'0'.repeat(MAX_BYTES - 700)}`)}]`,
  ),
  either('5 000 with U+0000 at the end of a name', () =>
    list(MAX_ENTRIES, () => heartbeat('a', { workload: `${'w'.repeat(60)}\\u0000` })),
  ),
  either('5 000 with a long unknown key', () =>
    list(MAX_ENTRIES, (i) => heartbeat('a', { fields: `,"x":"${`${i}`.padEnd(200, 'x')}"` })),
  ),
]

/** The fullest posts. `run` makes containers of one run unlike those of another. */
export const validHeartbeats = (run: string): Attack[] => {
  const valid = (name: string, body: (unique: string, n: number) => string): Attack => ({
    name: `heartbeats: ${name}`,
    path: COVERAGE,
    expected: 'valid',
    body: (i) => body(`${run}${i}`.replace(/[^a-zA-Z0-9]/g, ''), i),
  })
  return [
    valid('5 000 new', (unique) => list(MAX_ENTRIES, (k) => heartbeat(`${unique}x${k}`))),
    valid('5 000 of as many workloads', (unique) =>
      list(MAX_ENTRIES, (k) => heartbeat(`${unique}y${k}`, { workload: `w-${unique}-${k}` })),
    ),
    valid('5 000 that are known', (_, n) => list(MAX_ENTRIES, (k) => heartbeat(`known${k}`, { at: n }))),
    valid('5 000 of one container', (_, n) => list(MAX_ENTRIES, (k) => heartbeat('one', { at: n * MAX_ENTRIES + k }))),
    valid('4 MiB of long names', (unique) =>
      list(1_900, (k) =>
        heartbeat(`${unique}z${k}`.padEnd(128, '0')).replace(
          /"(hostile|w-0|w|c|n)"/g,
          (_, name) => `"${`${name}${unique}${k}`.padEnd(250, 'n')}"`,
        ),
      ),
    ),
  ]
}
