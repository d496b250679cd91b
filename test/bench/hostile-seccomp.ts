/** Resources, files of nodes and syscalls of workloads that cost more than they look, and the most that is allowed of each. */
import type postgres from 'postgres'
import { type Attack, fixed } from './hostile-bodies.ts'

const MAX_BODY_BYTES = 2 * 1024 * 1024
const MAX_LISTED = 10_000
const TIME = '2026-01-01T00:00:00'
const CR = '/seccomp/crs/hostile/hostile'
const FILES = '/seccomp/node-status'
const CALLS = '/pod/syscalls'

/** Workloads of one pod each that have few names, and some with as many and as long ones as there may be, but for a few. */
const UNIONS = 4_000
const FULL_UNIONS = 100
const NAMES_OF_FULL = 100
const NAME_CHARS = 64

const repeated = (count: number, element: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => element(i)).join(',')
const cr = (rules: string) => `{"spec":{"syscalls":[${rules}]}}`
const rule = (names: string) => `{"names":[${names}]}`
const files = (node: string, list: string) => `{"node_name":"${node}","files":[${list}]}`
const put = (attack: Attack): Attack => ({ ...attack, method: 'PUT' })

export const HOSTILE_SECCOMP: Attack[] = [
  ...[
    fixed('resources: 390 000 blank names', CR, 'refused', () =>
      cr(repeated(1_000, () => rule(repeated(390, () => '""')))),
    ),
    fixed('resources: 2 MiB of names', CR, 'refused', () => cr(rule(repeated(190_000, (i) => `"n${i}"`)))),
    fixed('resources: 90 000 names in rules', CR, 'refused', () =>
      cr(repeated(900, (k) => rule(repeated(100, (i) => `"n${k * 100 + i}"`)))),
    ),
    fixed('resources: 120 000 rules', CR, 'refused', () => cr(repeated(120_000, () => '{}'))),
    fixed('resources: a rule nested deep', CR, 'either', () => cr(`${'{"x":'.repeat(60_000)}0${'}'.repeat(60_000)}`)),
    fixed('resources: a name of 2 MB', CR, 'either', () => cr(rule(`"${'a'.repeat(2_000_000)}"`))),
  ].map(put),
  fixed('files: [0,0,...]', FILES, 'refused', () =>
    files(
      'hostile',
      repeated(380_000, () => '0'),
    ),
  ),
  fixed('files: 10 001', FILES, 'refused', () =>
    files(
      'hostile',
      repeated(MAX_LISTED + 1, () => '{"path":"a","hash":"b"}'),
    ),
  ),
  fixed('files: 2 x 10 000 that are none', FILES, 'valid', () =>
    files(
      'hostile',
      repeated(MAX_LISTED, () => '{"path":0}'),
    ).replace('}]}', `}],"paths":[${repeated(MAX_LISTED, () => '""')}]}`),
  ),
]

let made = 0

/** Each is unlike all before. */
export const validSeccomp = (): Attack[] => [
  put({
    name: 'valid: resource of 4 096 names',
    path: CR,
    expected: 'valid',
    body: () => cr(rule(repeated(4_096, (i) => `"${`n${++made}_${i}_`.padEnd(NAME_CHARS, 'x')}"`))),
  }),
  {
    name: 'valid: 20 000 tiny files, new',
    path: FILES,
    expected: 'valid',
    body: (i) => {
      const run = ++made
      const some = (letter: string) => repeated(MAX_LISTED, (k) => `"${letter}${run}-${k}"`)
      return files(`hostile-${i}`, some('f')).replace(']}', `],"paths":[${some('p')}]}`)
    },
  },
  {
    name: 'valid: 2 MiB of files, new',
    path: FILES,
    expected: 'valid',
    body: (i) => {
      const run = ++made
      return files(
        `hostile-${i}`,
        repeated(
          Math.floor((MAX_BODY_BYTES - 100) / 1_180),
          (k) => `{"path":"${`${run}-${k}`.padEnd(1_024, '/x')}","hash":"${'h'.repeat(128)}"}`,
        ),
      )
    },
  },
  {
    name: 'valid: a name more in 4 000 unions',
    path: CALLS,
    expected: 'valid',
    body: () => {
      const run = ++made
      return `[${repeated(UNIONS, (n) => call(`union-${n}`, `"s${run}"`))}]`
    },
  },
  {
    name: 'valid: a name more in 100 long unions',
    path: CALLS,
    expected: 'valid',
    body: () => {
      const name = `"${`m${++made}`.padEnd(NAME_CHARS, 'x')}"`
      return `[${repeated(FULL_UNIONS, (n) => call(`full-${n}`, name))}]`
    },
  },
]

const call = (pod: string, names: string) =>
  `{"pod_name":"${pod}","pod_namespace":"","syscalls":[${names}],"arch":"x","time_stamp":"${TIME}"}`

/** The pods of the unions. */
export async function fillUnions(sql: postgres.Sql): Promise<void> {
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind, workload_name)
    select p.name, '', 'hostile', now() at time zone 'utc', 'node-h', false, '{}', 'Deployment', p.name
    from (select 'union-' || i as name from generate_series(0, ${UNIONS - 1}::int) i
          union all select 'full-' || i from generate_series(0, ${FULL_UNIONS - 1}::int) i) p`
  await sql`
    insert into pod_syscalls
    select p.pod_name, '', (select string_agg(rpad('n' || i, ${NAME_CHARS}::int, 'x'), ',') from generate_series(1, ${NAMES_OF_FULL}::int) i), 'x', ${TIME}
    from pod p where starts_with(p.pod_name, 'full-')`
}
