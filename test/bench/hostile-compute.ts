/** Posts of compute that cost more than they look, and the fullest that are allowed: 16 MiB of 5000 containers. */
import { type Attack, fixed } from './hostile-bodies.ts'

export const COMPUTE_PATH = '/pod/compute/batch'
export const MINUTES_PATH = '/pod/compute/history/batch'
const MAX_BYTES = 16 * 1024 * 1024
const MAX_CONTAINERS = 5_000

const post = (containers: string, more = '') =>
  `{"node":"node-h","ts":"2026-01-01T00:00:00Z","interval_ms":5000${more},"containers":${containers}}`
const list = (count: number, entry: (i: number) => string) =>
  `[${Array.from({ length: count }, (_, i) => entry(i)).join(',')}]`

const CPU =
  '{"usage_usec":500000,"quota_usec":200000,"period_usec":100000,"request_millis":250,' +
  '"limit_millis":2000,"nr_periods":50,"nr_throttled":5,"throttled_usec":40000,' +
  '"psi_some10":12.5,"psi_full10":2.25}'
const MEMORY =
  '{"current":300000000,"working_set":200000000,"limit":536870912,"request":268435456,' +
  '"psi_some10":1.5,"psi_full10":0.5,"events_high":3,"events_max":2,"oom_kill":1,"refault":70,"pgmajfault":9}'
const FIVES = list(24, () => '5')
const RUNQ = `{"count":60,"p50_us":200,"p95_us":900,"p99_us":1500,"max_us":4000,"overflow":0,"hist":${FIVES}}`

const CPU_MINUTE = CPU.replace(/"usage_usec":\d+/, '"usage_millis":{"avg":120.5,"max":250.25,"last":90.75}').replaceAll(
  /("psi_\w+"):[\d.]+/g,
  '$1:{"avg":4.5,"max":12.25}',
)
const MEMORY_MINUTE = MEMORY.replaceAll(
  /("(?:current|working_set)"):(\d+)/g,
  '$1:{"avg":$2,"max":$2,"last":$2}',
).replaceAll(/("psi_\w+"):[\d.]+/g, '$1:{"avg":4.5,"max":12.25}')

const container = (uid: string, fields = '', cpu = '{}', memory = '{}') =>
  `{"container_uid":"${uid}","pod_uid":"u","pod_name":"p","namespace":"hostile","container":"c",` +
  `"cpu":${cpu},"memory":${memory}${fields}}`
const culprit = (i: number, ref: string, id = '9000') =>
  `{"cgroup_id":${id},"kind":"pod","ref":"${ref}","container_uid":"${ref}","count":3,"wait_ns":${1_000_000 + i}}`

/** An array nested as deep as it goes. */
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const quotes = (count: number) => '\\"'.repeat(count)
/** What is left of 16 MiB, in quotes. */
const rest = (text: string) => quotes(Math.floor((MAX_BYTES - text.length - 200) / 2))

const either = (name: string, body: () => string) => fixed(`compute: ${name}`, COMPUTE_PATH, 'either', body)
const refused = (name: string, body: () => string) => fixed(`compute: ${name}`, COMPUTE_PATH, 'refused', body)

const eitherMinutes = (name: string, body: () => string) =>
  fixed(`compute history: ${name}`, MINUTES_PATH, 'either', body)

export const HOSTILE_COMPUTE: Attack[] = [
  eitherMinutes('60 000 culprits of one container', () =>
    post(`[${container('u', `,"blame":${list(60_000, (i) => `{"kind":"k","ref":"r","wait_ns":${1 + i}}`)}`)}]`),
  ),
  eitherMinutes('5 000 containers with 20 culprits', () =>
    post(
      list(MAX_CONTAINERS, (k) =>
        container(`h-${k}`, `,"blame":${list(20, (i) => `{"kind":"k","ref":"r","wait_ns":${1 + i}}`)}`),
      ),
    ),
  ),
  eitherMinutes('5 000 histograms of 30 fractions', () =>
    post(list(MAX_CONTAINERS, (k) => container(`h-${k}`, `,"runq":{"hist":${list(30, () => '0.123')}}`))),
  ),
  eitherMinutes('a histogram of 390 000 zeros', () =>
    post(`[${container('u', `,"runq":{"hist":${list(390_000, () => '0')}}`)}]`),
  ),
  eitherMinutes('16 MiB of quotes in refs', () =>
    post(`[${container('u', `,"blame":${list(8_000, (i) => culprit(i, quotes(500)))}`)}]`),
  ),
  eitherMinutes('a million quotes in refs', () =>
    post(`[${container('u', `,"blame":${list(2_000, (i) => culprit(i, quotes(250)))}`)}]`),
  ),
  refused('16 MiB of zeros', () => post(list(8_000_000, () => '0'))),
  refused('5 001 of {}', () => post(list(MAX_CONTAINERS + 1, () => '{}'))),
  refused('390 000 zeros', () => post(list(390_000, () => '0'))),
  refused('nested deep, in a container', () => post(`[${nested(8_000_000)}]`)),
  refused('130 000 keys', () => post('[]', `,"x":{${list(131_000, (i) => `"k${i}":0`).slice(1, -1)}}`)),
  refused('16 MiB of quotes as the node', () => post('[]').replace('node-h', rest(''))),
  either('nested as deep as it may be', () => post(`[${container('u', `,"blame":${nested(32_000)}`)}]`)),
  either('5 000 of {}', () => post(list(MAX_CONTAINERS, () => '{}'))),
  either('5 000 zeros', () => post(list(MAX_CONTAINERS, () => '0'))),
  either('16 MiB of quotes in a name', () => post(`[${container(rest(''))}]`)),
  either('16 MiB of quotes in refs', () =>
    post(`[${container('u', `,"blame":${list(8_000, (i) => culprit(i, quotes(500)))}`)}]`),
  ),
  either('a million quotes in a name', () => post(`[${container(quotes(1_000_000))}]`)),
  either('a million quotes in refs', () =>
    post(`[${container('u', `,"blame":${list(2_000, (i) => culprit(i, quotes(250)))}`)}]`),
  ),
  either('16 MiB of quotes in stray texts', () => post('[]', `,"x":${list(1_000, () => `"${quotes(8_000)}"`)}`)),
  either('390 000 integers of 17 digits', () =>
    post('[]', `,"x":${list(390_000, (i) => `9${String(i).padStart(16, '7')}`)}`),
  ),
  either('390 000 fractions', () => post('[]', `,"x":${list(390_000, (i) => `0.${String(i).padStart(17, '7')}1`)}`)),
  either('390 000 numbers of 17 digits in a container', () =>
    post(`[${container('u', `,"runq":{"hist":${list(390_000, () => '17777777777777777')}}`)}]`),
  ),
  either('99 000 numbers of 17 digits in a container', () =>
    post(`[${container('u', `,"runq":{"hist":${list(99_000, () => '17777777777777777')}}`)}]`),
  ),
  either('60 000 ids of 20 digits', () =>
    post(`[${container('u', `,"blame":${list(60_000, () => '{"cgroup_id":18446744073709551615}')}`)}]`),
  ),
  either('ids of 20 digits beside 16 MiB of quotes', () => {
    const blame = `,"blame":${list(30_000, () => '{"cgroup_id":18446744073709551615}')}`
    return post(`[${container('u', blame)}]`, `,"x":"${rest(blame)}"`)
  }),
  either('18 000 culprits of one container', () =>
    post(`[${container('u', `,"blame":${list(18_000, (i) => culprit(i % 99, 'ref'))}`)}]`),
  ),
  either('one text of 16 MiB of é', () => post(`[${container('é'.repeat(MAX_BYTES / 2 - 200))}]`)),
  either('a number of 16 million digits', () => post('[]', `,"x":1${'0'.repeat(MAX_BYTES - 200)}`)),
  either('98 000 short texts', () => post('[]', `,"x":${list(98_000, (i) => `"${i}"`)}`)),
  either('16 MiB of U+0000 in names', () => post(list(2_000, (i) => container(`${i}${'\\u0000'.repeat(1_300)}`)))),
]

/** The fullest posts. `run` makes containers of one run unlike those of another. */
export const validCompute = (run: string): Attack[] => [
  {
    name: 'compute: 250 containers with 20 culprits',
    path: COMPUTE_PATH,
    expected: 'valid',
    body: (i) =>
      post(
        list(250, (k) =>
          container(
            `${run}-${i}-${k}`,
            `,"runq":${RUNQ},"blame":${list(20, (n) => culprit(n, `shop/checkout-${n}/app`))}`,
            CPU,
            MEMORY,
          ),
        ),
      ),
  },
  {
    name: 'compute history: 250 containers with 10 culprits',
    path: MINUTES_PATH,
    expected: 'valid',
    body: (i) =>
      post(
        list(250, (k) =>
          container(
            `${run}-${i}-${k}`,
            `,"runq":${RUNQ},"blame":${list(10, (n) => culprit(n, `shop/checkout-${n}/app`))}`,
            CPU_MINUTE,
            MEMORY_MINUTE,
          ),
        ),
      ),
  },
  {
    name: 'compute history: 1 000 containers',
    path: MINUTES_PATH,
    expected: 'valid',
    body: (i) => post(list(1_000, (k) => container(`${run}-${i}-${k}`, `,"runq":${RUNQ}`, CPU_MINUTE, MEMORY_MINUTE))),
  },
  {
    name: 'compute: 5 000 containers',
    path: COMPUTE_PATH,
    expected: 'valid',
    body: (i) =>
      post(
        list(MAX_CONTAINERS, (k) =>
          container(`${run}-${i}-${k}`, ',"cgroup_id":1', '{"usage_usec":5}', '{"current":7}'),
        ),
      ),
  },
  {
    name: 'compute: 5 000 of one container',
    path: COMPUTE_PATH,
    expected: 'valid',
    body: () =>
      post(list(MAX_CONTAINERS, () => container('one', ',"cgroup_id":1', '{"usage_usec":5}', '{"current":7}'))),
  },
  {
    name: 'compute: 5 000 with the longest names',
    path: COMPUTE_PATH,
    expected: 'valid',
    body: (i) => {
      // Of one letter beyond Latin-1 each takes two bytes a letter, as does the text of all.
      const longest = (bytes: number) => `\u20ac${'n'.repeat(bytes - 3)}`
      const name = longest(253)
      return post(
        list(
          MAX_CONTAINERS,
          (k) =>
            `{"container_uid":"${`${run}-${i}-${k}`.padEnd(30, 'u')}${longest(482)}","pod_uid":"${longest(128)}",` +
            `"pod_name":"${name}","namespace":"hostile","container":"${name}","cgroup_id":18446744073709551615,` +
            `"cpu":{},"memory":{},"blame":[${culprit(1, longest(190))}]}`,
        ),
      )
    },
  },
]
