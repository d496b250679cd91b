/** Bodies that cost a server more than they cost whoever sends them, and the largest that are allowed: all within 2 MiB. */
import { MAX_BATCH_FLOWS } from '../../lib/traffic/index.ts'
import { flowBatch, syscalls } from './bodies.ts'

const MAX_BODY_BYTES = 2 * 1024 * 1024

export interface Attack {
  name: string
  path: string
  /** POST where it is not said. */
  method?: 'PUT'
  /** What it is to be answered with: a 4xx, 200, or either, as the rules of the route have it. A 503 is right for all. */
  expected: 'refused' | 'valid' | 'either'
  /** It is larger than a body may be as it is sent. */
  isPackedOnly?: boolean
  /** Its route takes no coding. */
  isPlainOnly?: boolean
  /** Body number `i`; those of a refused one are all the same. */
  body: (i: number) => string
}

const TIME = '2026-01-01T00:00:00'
const BATCH = '/pod/traffic/batch'

const list = (element: string, count: number) => `[${Array.from({ length: count }, () => element).join(',')}]`

/** As many elements as fit, joined with commas. */
function filled(
  head: string,
  tail: string,
  element: (i: number) => string,
  maxCount = Number.POSITIVE_INFINITY,
): string {
  const parts: string[] = []
  let bytes = head.length + tail.length
  for (let i = 0; parts.length < maxCount; i++) {
    const one = element(i)
    bytes += Buffer.byteLength(one) + 1
    if (bytes > MAX_BODY_BYTES) break
    parts.push(one)
  }
  return head + parts.join(',') + tail
}

const spec = (i: number, fields: string) =>
  `{"pod_name":"hostile-${i}","pod_ip":"10.200.${i >> 8}.${i & 255}","pod_namespace":"hostile","node_name":"node-h","is_dead":false,"time_stamp":"${TIME}",${fields}}`

/** Opened and never closed, or closed again. */
const nested = (open: string, inner: string, close: string, depth: number) =>
  open.repeat(depth) + inner + close.repeat(depth)

const service = (i: number, value: string) =>
  `{"svc_ip":"10.201.${i >> 8}.${i & 255}","svc_name":"hostile","svc_namespace":"hostile","time_stamp":"${TIME}","service_spec":{"n":${value}}}`

const uuid = (run: string, n: number) => `${run}-0000-4000-8000-${n.toString(16).padStart(12, '0')}`

/** What is sent as it stands, made once. */
export function fixed(name: string, path: string, expected: Attack['expected'], make: () => string): Attack {
  let made: string | undefined
  const body = () => {
    made ??= make()
    return made
  }
  return { name, path, expected, body }
}

export const HOSTILE: Attack[] = [
  fixed('[0,0,...] of 1 048 501', BATCH, 'refused', () => list('0', 1_048_501)),
  fixed('[{"uuid":"z"},...] x 160 001', BATCH, 'refused', () => list('{"uuid":"z"}', 160_001)),
  fixed('["\\u0000",[],...]', BATCH, 'refused', () => list('"\\u0000",[]', 174_000)),
  fixed('[{},...] to syscalls', '/pod/syscalls', 'refused', () => list('{}', 699_000)),
  fixed('2 MB of [', BATCH, 'refused', () => '['.repeat(2_000_000)),
  fixed('2 MB of {"a":', BATCH, 'refused', () => '{"a":'.repeat(400_000)),
  fixed('labels: 100 000 bad values', '/pod/spec', 'refused', () =>
    spec(0, `"workload_selector_labels":{${Array.from({ length: 100_000 }, (_, k) => `"k${k}":0`).join(',')}}`),
  ),
  fixed('labels: 19 000 bad values', '/pod/spec', 'refused', () =>
    spec(0, `"workload_selector_labels":{${Array.from({ length: 19_000 }, (_, k) => `"k${k}":0`).join(',')}}`),
  ),
  ...[100_000, 19_000].map((count) =>
    fixed(`manifest: ${count / 1_000} 000 different keys`, '/pod/spec', 'refused', () => {
      const objects = Array.from(
        { length: count / 100 },
        (_, i) => `{${Array.from({ length: 100 }, (_, k) => `"k${i}-${k}":0`).join(',')}}`,
      )
      return spec(6, `"pod_obj":{"status":[${objects.join(',')}]},"host_network":0`)
    }),
  ),
  ...[230_000, 100_000].map((count) =>
    fixed(`manifest: ${count / 1_000} 000 short texts`, '/pod/spec', 'refused', () => {
      const texts = Array.from({ length: count }, (_, k) => `"${k}"`)
      return spec(7, `"pod_obj":{"status":[${texts.join(',')}]},"host_network":0`)
    }),
  ),
  fixed('containers: 100 000 entries', '/pod/spec', 'either', () =>
    spec(1, `"containers":${list('{"name":"a"}', 100_000)}`),
  ),
  fixed('pod_obj.metadata nested deep', '/pod/spec', 'refused', () =>
    spec(2, `"pod_obj":{"metadata":${nested('{"a":', '0', '}', 300_000)}}`),
  ),
  fixed('pod_obj.status nested deep', '/pod/spec', 'either', () =>
    spec(3, `"pod_obj":{"status":${nested('[', '', ']', 900_000)}}`),
  ),
  fixed('pod_ips of 500 000', '/pod/spec', 'either', () => spec(4, `"pod_ips":${list('"1"', 500_000)}`)),
  fixed('syscalls: 100 000 names', '/pod/syscalls', 'refused', () => {
    const names = Array.from({ length: 100_000 }, (_, k) => `"n${k}"`).join(',')
    return `[{"pod_name":"hostile-5","pod_namespace":"","syscalls":[${names}],"arch":"x86_64","time_stamp":"${TIME}"}]`
  }),
  fixed(
    '1 with 2 million zeros, a flow',
    BATCH,
    'refused',
    () => `[{"uuid":"z","time_stamp":"${TIME}","syn_retries":1${'0'.repeat(2_000_000)}}]`,
  ),
  fixed('1 with 2 million zeros, opaque', '/svc/spec', 'either', () => service(0, `1${'0'.repeat(2_000_000)}`)),
  fixed('2 MiB of 17-digit integers', '/svc/spec', 'either', () => {
    const [start, end] = service(1, '[]').split('[]') as [string, string]
    return filled(`${start}[`, `]${end}`, (k) => `9${String(k).padStart(16, '7')}`)
  }),
]

/** The largest bodies that are allowed. `run` makes flows of one run unlike those of another: eight hexadecimal digits. */
export function validBodies(run: string): Attack[] {
  const series = Number.parseInt(run, 16) % 1_000
  const flows = (i: number) => {
    const first = 1_000_000 + (series * 64 + i) * 64
    return filled('[', ']', (k) => flowBatch(first + k, 5_000).slice(1, -1))
  }
  return [
    {
      name: 'valid: smallest flows, 10 000',
      path: BATCH,
      expected: 'valid',
      body: (i) =>
        filled(
          '[',
          ']',
          (k) => `{"uuid":"${uuid(run, i * MAX_BATCH_FLOWS + k)}","time_stamp":"${TIME}"}`,
          MAX_BATCH_FLOWS,
        ),
    },
    { name: 'valid: 2 MiB of ordinary flows', path: BATCH, expected: 'valid', body: flows },
    {
      name: 'valid: 2 MiB of syscalls',
      path: '/pod/syscalls',
      expected: 'valid',
      body: (i) => filled('[', ']', (k) => manySyscalls(i * 500 + k)),
    },
    {
      name: 'valid: 2 MiB manifest',
      path: '/pod/spec',
      expected: 'valid',
      body: (i) => {
        const kept = Array.from({ length: 10_000 }, (_, k) => `"example.test/annotation-${k}":"value ${k}"`).join(',')
        const head = `"pod_obj":{"metadata":{"uid":"m-${i}","annotations":{${kept}}},"spec":{"containers":[{"name":"app","env":[`
        return filled(
          spec(100 + i, head).slice(0, -1),
          ']}]}}}',
          (k) => `{"name":"SETTING_${k}","value":"of the environment"}`,
        )
      },
    },
  ]
}

/** Of a pod that was seen to call everything there is, and numbers without a name. */
function manySyscalls(i: number): string {
  const [entry] = JSON.parse(syscalls(i)) as [{ syscalls: string[] }]
  for (let n = 500; n < 900; n++) entry.syscalls.push(String(n * 1_000 + (i % 1_000)))
  return JSON.stringify(entry)
}
