/** Posts of the runtime inventory that cost more than they look, and the fullest that are allowed: 8 MiB of 5 000 executables. */
import { type Attack, fixed } from './hostile-bodies.ts'

const EXECUTABLES = '/runtime/executables'
const MAX_BYTES = 8 * 1024 * 1024
const MAX_ENTRIES = 5_000
const MAX_PATH = 4_096
const DIGEST = `sha256:${'a'.repeat(64)}`
const TIME = '2026-01-01T00:00:00.123456789'

const list = (count: number, entry: (i: number) => string) =>
  `[${Array.from({ length: count }, (_, i) => entry(i)).join(',')}]`

/** An entry with all its keys; `fields` are more of them. */
const executable = (path: string, workload = 'w', fields = '') =>
  `{"pod_namespace":"hostile","pod_name":"${workload}-0","workload_kind":"Deployment","workload_name":"${workload}","container_name":"c","image_digest":"${DIGEST}","kind":"exec","path":"${path}","path_complete":true,"source":"ebpf","origin":"image","first_seen":"${TIME}","last_seen":"${TIME}"${fields}}`

/** As many entries as have room with paths of so many bytes each. */
const roomFor = (pathBytes: number) =>
  Math.min(MAX_ENTRIES, Math.floor((MAX_BYTES - 2) / (executable('').length + pathBytes + 1)))
/** An array nested as deep as it goes. */
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

const either = (name: string, body: () => string) => fixed(`executables: ${name}`, EXECUTABLES, 'either', body)
const refused = (name: string, body: () => string) => fixed(`executables: ${name}`, EXECUTABLES, 'refused', body)
const times = (count: number, text: string) => text.repeat(count)

export const HOSTILE_EXECUTABLES: Attack[] = [
  refused('8 MiB of zeros', () => list(4_000_000, () => '0')),
  refused('8 MiB of {}', () => list(2_700_000, () => '{}')),
  refused('5 001 of {}, and 8 MiB of blanks', () => list(MAX_ENTRIES + 1, () => '{}').padEnd(MAX_BYTES)),
  either('130 000 of {} in one', () => `[{"path":${list(129_990, () => '{}')}}]`),
  refused('another key in each of 60 000', () => `[{"path":${list(60_000, (i) => `{"k${i}":0}`)}}]`),
  refused('nested deep', () => `[${nested(4_000_000)}]`),
  either('nested as deep as it may be', () => `[${nested(32_000)}]`),
  either('8 MiB of blanks', () => '[]'.padStart(MAX_BYTES)),
  either('5 000 of {}', () => list(MAX_ENTRIES, () => '{}')),
  either('5 000 of other keys', () => list(MAX_ENTRIES, (i) => `{"${String(i).padEnd(1_600, 'k')}":0}`)),
  either('20 other keys in each of 4 000', () =>
    list(4_000, (i) => `{${Array.from({ length: 20 }, (_, k) => `"k${i}_${k}":${k}`).join(',')}}`),
  ),
  either('5 000 of one long unknown key', () =>
    list(MAX_ENTRIES, () => executable('/x', 'w', `,"x":"${'k'.repeat(1_200)}"`)),
  ),
  either('one path of 8 MiB', () => `[${executable('p'.repeat(MAX_BYTES - 500))}]`),
  either('one path of 8 MiB of escapes', () => `[${executable(times(1_390_000, '\\u0041'))}]`),
  either('one path of 8 MiB of quotes', () => `[${executable(times(4_100_000, '\\"'))}]`),
  either('one source of 8 MiB of blanks', () => `[${executable('/x').replace('ebpf', ' '.repeat(MAX_BYTES - 500))}]`),
  either('5 000 origins of 1 100 bytes', () =>
    list(MAX_ENTRIES, () => executable('/x').replace('"image"', `"${'é'.repeat(550)}"`)),
  ),
  either('5 000 with U+0000 at the end', () => list(MAX_ENTRIES, () => executable(`${'x'.repeat(1_100)}\\u0000`))),
  either(
    '390 000 numbers for a path',
    () => `[${executable('').replace('"path":""', `"path":${list(390_000, (i) => String(i))}`)}]`,
  ),
  { ...refused('200 MiB of blanks', () => '[]'.padStart(200 * 1024 * 1024)), isPackedOnly: true },
  either('8 MiB of one number', () => `[{"path":1${'0'.repeat(MAX_BYTES - 200)}}]`),
]

/** The fullest posts. `run` makes paths of one run unlike those of another. */
export const validExecutables = (run: string): Attack[] => {
  const valid = (name: string, body: (unique: string) => string): Attack => ({
    name: `executables: ${name}`,
    path: EXECUTABLES,
    expected: 'valid',
    body: (i) => body(`${run}-${i}-`),
  })
  /** Paths as long as they may be, of one letter that is spelled so and has so many bytes, unlike at their end. */
  const alike = (unique: string, letter: string, bytes: number) => {
    const letters = Math.floor((MAX_PATH - unique.length - 4) / bytes)
    return list(roomFor(letters * Buffer.byteLength(letter) + unique.length + 4), (k) =>
      executable(`${letter.repeat(letters)}${unique}${k}`),
    )
  }
  return [
    valid('5 000 new', (unique) => list(MAX_ENTRIES, (k) => executable(`/usr/lib/${unique}${k}`))),
    valid('5 000 of one path', () => list(MAX_ENTRIES, () => executable('/one'))),
    valid('5 000 of as many workloads', (unique) => list(MAX_ENTRIES, (k) => executable('/bin/sh', `${unique}${k}`))),
    valid('8 MiB of paths that end unlike', (unique) => alike(unique, 'p', 1)),
    valid('8 MiB of quotes in paths', (unique) => alike(unique, '\\"', 1)),
    valid('8 MiB of escapes in paths', (unique) => alike(unique, '\\u0001', 1)),
    valid('8 MiB of long letters in paths', (unique) => alike(unique, '€', 3)),
    valid('5 000 of 1 300 bytes', (unique) => list(MAX_ENTRIES, (k) => executable(`${'€'.repeat(420)}${unique}${k}`))),
    valid('5 000 of long names', (unique) =>
      list(MAX_ENTRIES, (k) =>
        executable('/x').replace(/"(hostile|w-0|w|c)"/g, (_, name) => `"${name}${unique}${k}${'n'.repeat(220)}"`),
      ),
    ),
  ]
}
