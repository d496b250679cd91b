/** Drains of kernel denials that cost more than they look, and the fullest that are allowed: 4 MiB of 10 000 entries. */
import { type Attack, fixed } from './hostile-bodies.ts'

export const DENIAL_PATH = '/seccomp/denials'
/** Pods that the inventory has to have, each of a workload of its own. */
export const DENIED_PODS = 10_000
const MAX_BYTES = 4 * 1024 * 1024
const MAX_ENTRIES = 10_000

const drain = (entries: string, node = 'node-h') =>
  `{"node":"${node}","capturing":true,"intervalSeconds":10,"denials":${entries}}`
const list = (count: number, entry: (i: number) => string) =>
  `[${Array.from({ length: count }, (_, i) => entry(i)).join(',')}]`

const denial = (pod: string, fields = '') =>
  `{"podUid":"uid-${pod}","podName":"${pod}","podNamespace":"hostile","syscall":"ptrace","action":"SCMP_ACT_ERRNO","count":1${fields}}`
const TIMES = ',"firstSeen":"2026-01-01T00:00:00.123456789+02:00","lastSeen":"2026-01-01T00:00:00.123456789+02:00"'

/** An array nested as deep as it goes. */
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

const either = (name: string, entries: () => string) =>
  fixed(`denials: ${name}`, DENIAL_PATH, 'either', () => drain(entries()))
const refused = (name: string, entries: () => string) =>
  fixed(`denials: ${name}`, DENIAL_PATH, 'refused', () => drain(entries()))

export const HOSTILE_DENIALS: Attack[] = [
  refused('4 MiB of zeros', () => list(2_000_000, () => '0')),
  refused('400 000 zeros less some', () => list(399_000, () => '0')),
  refused('120 000 of {}', () => list(120_000, () => '{}')),
  refused('nested deep, in an entry', () => `[${nested(1_900_000)}]`),
  refused('another key in each of 100 000', () => list(100_000, (i) => `{"k${i}":0}`)),
  either('nested as deep as it may be', () => `[${nested(32_000)}]`),
  either('10 000 of {}', () => list(MAX_ENTRIES, () => '{}')),
  either('10 000 of other keys', () => list(MAX_ENTRIES, (i) => `{"a${i}":0}`)),
  either('10 000 with U+0000', () => list(MAX_ENTRIES, () => denial('p', ',"arch":"\\u0000"'))),
  either('10 000 with long texts', () => list(MAX_ENTRIES, () => denial('p', `,"lastSeen":"${'é'.repeat(110)}"`))),
  either('one text of 4 MiB', () => `[{"podUid":"${'x'.repeat(MAX_BYTES - 200)}"}]`),
  either('one text of 4 MiB of blanks', () => `[${denial('p', `,"arch":"${' '.repeat(MAX_BYTES - 500)}"`)}]`),
  either('a count of 4 million digits', () => `[{"count":1${'0'.repeat(MAX_BYTES - 200)}}]`),
  either('4 MiB of 17-digit integers', () => `[{"count":${list(220_000, (i) => `9${String(i).padStart(16, '7')}`)}}]`),
  either('98 000 short texts', () => `[${list(98_000, (i) => `"${i}"`)}]`),
]

/** The fullest drains. `run` makes pods of one run unlike those of another. */
export const validDenials = (run: string): Attack[] => [
  {
    name: 'denials: 10 000, each of another pod',
    path: DENIAL_PATH,
    expected: 'valid',
    body: (i) => drain(list(MAX_ENTRIES, (k) => denial(`${run}-${i}-${k}`, TIMES))),
  },
  {
    name: 'denials: 10 000 of as many workloads',
    path: DENIAL_PATH,
    expected: 'valid',
    body: (i) =>
      drain(
        list(DENIED_PODS, (k) => denial(`denied-${k}`, TIMES)),
        `node-${i}`,
      ),
  },
  {
    name: 'denials: 10 000 of one key',
    path: DENIAL_PATH,
    expected: 'valid',
    body: (i) =>
      drain(
        list(MAX_ENTRIES, () => denial('one', TIMES)),
        `node-${i}`,
      ),
  },
  {
    name: 'denials: 4 MiB of long names',
    path: DENIAL_PATH,
    expected: 'valid',
    body: (i) =>
      drain(
        list(
          4_300,
          (k) =>
            `{"podUid":"${`${run}-${i}-${k}`.padEnd(128, 'u')}","podName":"${'p'.repeat(253)}","podNamespace":"${'n'.repeat(253)}","syscall":"${'s'.repeat(128)}","action":"${'A'.repeat(64)}","arch":"${'a'.repeat(30)}","count":1}`,
        ),
      ),
  },
]
