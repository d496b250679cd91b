/** Payloads of findings and components that cost more than they look, and the largest that are allowed: 1 MiB packed, 8 MiB unpacked. */
import { createHash } from 'node:crypto'
import { type Attack, fixed } from './hostile-bodies.ts'

const MAX_INFLATED_BYTES = 8 * 1024 * 1024
const MAX_FINDINGS = 20_000
const MAX_COMPONENTS = 10_000

const digestOf = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`
const DIGEST = digestOf('hostile')
export const PAYLOAD_PATH = `/images/${DIGEST}/vulnerabilities`
const SBOM_PATH = `/images/${DIGEST}/sbom`

/** All bodies of a line are of one image: each but the first is newer than the one before, and replaces it. */
const head = (list: string, second = 0, more = '') =>
  `{"schema_version":1,"image":{"digest":"${DIGEST}"},"source":"registry","scanned_at":"${new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()}",${more}"${list}":`

/** As many elements as fit. */
function filled(
  start: string,
  element: (i: number) => string,
  maxCount: number,
  maxBytes = MAX_INFLATED_BYTES,
): string {
  const parts: string[] = []
  for (let bytes = start.length + 3; parts.length < maxCount; ) {
    const one = element(parts.length)
    bytes += Buffer.byteLength(one) + 1
    if (bytes > maxBytes) break
    parts.push(one)
  }
  return `${start}[${parts.join(',')}]}`
}

const findings = (element: (i: number) => string, maxBytes = MAX_INFLATED_BYTES) =>
  filled(head('vulnerabilities'), element, MAX_FINDINGS, maxBytes)
const tiny = (i: number, fields = '') => `{"id":"C${i}","package":{"name":"p"}${fields}}`
const list = (count: number, one: (k: number) => string) => Array.from({ length: count }, (_, k) => one(k)).join(',')

const packed = (name: string, expected: Attack['expected'], make: () => string, path = PAYLOAD_PATH): Attack => ({
  ...fixed(name, path, expected, make),
  isPackedOnly: true,
})

export const HOSTILE_PAYLOADS: Attack[] = [
  packed('findings: 200 MB of blanks', 'refused', () => ' '.repeat(200_000_000)),
  packed('findings: [0,0,...]', 'refused', () => `${head('vulnerabilities')}[${'0,'.repeat(4_000_000)}0]}`),
  packed('findings: [{},{},...]', 'refused', () => `${head('vulnerabilities')}[${'{},'.repeat(2_700_000)}{}]}`),
  packed('findings: 8 MB of [', 'refused', () => `${head('vulnerabilities')}${'['.repeat(8_000_000)}`),
  packed('findings: 8 MB of {"a":', 'refused', () => '{"a":'.repeat(1_600_000)),
  packed(
    'findings: zeros beside the list',
    'refused',
    () => `${head('vulnerabilities', 0, `"x":[${'0,'.repeat(4_000_000)}0],`)}[]}`,
  ),
  packed(
    'findings: an element of 4 million',
    'refused',
    () => `${head('vulnerabilities')}[${tiny(0, `,"x":[${'0,'.repeat(4_000_000)}0]`)}]}`,
  ),
  packed('findings: containers in each', 'refused', () => findings((i) => tiny(i, `,"x":[${'[],'.repeat(120)}[]]`))),
  packed(
    'findings: the last is bad',
    'refused',
    () => `${findings(ordinary, MAX_INFLATED_BYTES - 2).slice(0, -2)},7]}`,
  ),
  packed('findings: the last has no id', 'refused', () =>
    findings((i) => (i < MAX_FINDINGS - 1 ? tiny(i, ',"title":"of many"') : '{"id":"","package":{"name":"p"}}')),
  ),
  packed('findings: cut short', 'refused', () => findings(ordinary).slice(0, -2)),
  packed('findings: 400 000 different keys', 'either', () =>
    findings((i) => tiny(i, `,${list(40, (k) => `"${(i * 40 + k).toString(36)}xx":0`)}`), 5_000_000),
  ),
  packed('findings: 200 000 who scored', 'either', () =>
    findings((i) => tiny(i, `,"cvss":{${list(30, (k) => `"v${i * 30 + k}":{}`)}}`), 4_000_000),
  ),
  packed('findings: file paths by the dozen', 'either', () =>
    findings((i) => tiny(i, `,"file_paths":[${list(40, (k) => `"${(i * 40 + k) % 973}"`)}]`)),
  ),
  packed(
    'findings: one title of 8 MB',
    'either',
    () => `${head('vulnerabilities')}[${tiny(0, `,"title":"é${'x'.repeat(8_000_000)}"`)}]}`,
  ),
  packed(
    'findings: 8 MB that nobody reads',
    'either',
    () => `${head('vulnerabilities', 0, `"x":"é${'x'.repeat(8_000_000)}",`)}[]}`,
  ),
  packed('findings: one of all, 20 000 times', 'either', () =>
    findings((i) => tiny(0, `,"fixed_version":"${i}","cvss":{"v${i}":{"v3_score":1}}`)),
  ),
  packed('components: [{},{},...]', 'refused', () => `${head('components')}[${'{},'.repeat(2_700_000)}{}]}`, SBOM_PATH),
  packed(
    'components: control characters',
    'either',
    () => filled(head('components'), (i) => `{"name":"${i}${'\\u0001'.repeat(130)}"}`, MAX_COMPONENTS),
    SBOM_PATH,
  ),
]

/** As scanners post them. */
const ordinary = (i: number) =>
  JSON.stringify({
    id: `CVE-2026-${i}`,
    package: {
      name: `libpkg${i % 700}`,
      version: `1.${i % 9}.${i}`,
      type: 'deb',
      purl: `pkg:deb/debian/libpkg${i}@1.${i}`,
    },
    ...{ fixed_version: `1.${i}.1`, severity: 'HIGH', score: 7.5, title: `heap overflow in part ${i} of the parser` },
    ...{
      cvss: { nvd: { v3_score: 7.5, v3_vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N' } },
      primary_url: `https://advisories.test/${i}`,
    },
    ...{
      target: 'app (debian 12)',
      class: 'os-pkgs',
      published_at: '2026-01-02T03:04:05Z',
      last_modified_at: '2026-02-02T03:04:05Z',
    },
    file_paths: [`usr/lib/lib${i}.so`],
  })

const part = (i: number) =>
  JSON.stringify({
    ...{
      name: `libpkg${i}`,
      version: `1.2.${i % 9}`,
      purl: `pkg:deb/debian/libpkg${i}@1.2?arch=amd64`,
      type: 'deb',
      class: 'os-pkgs',
    },
    ...{ src_name: `src${i % 900}`, src_version: '1.2', licenses: ['MIT', 'Apache-2.0'], layer_digest: DIGEST },
    file_paths: Array.from({ length: 10 }, (_, k) => `usr/share/doc/libpkg${i}/part-${k}/copyright`),
  })

/** The largest payloads that are allowed. `run` makes those of one run newer than those of another. */
export function validPayloads(run: string): Attack[] {
  const series = (Number.parseInt(run, 16) % 10_000) * 1_000
  let made = 0
  const newer = () => series + made++
  return [
    {
      ...{ name: 'findings: 1 MB of ordinary ones', path: PAYLOAD_PATH, expected: 'valid' },
      body: () =>
        filled(head('vulnerabilities', newer(), `"x":${made},`), (i) => ordinary(i + made), MAX_FINDINGS, 1_000_000),
    },
    {
      ...{ name: 'findings: 8 MiB of ordinary ones', path: PAYLOAD_PATH, expected: 'valid', isPackedOnly: true },
      body: () => filled(head('vulnerabilities', newer()), (i) => ordinary(i + made), MAX_FINDINGS),
    },
    {
      ...{ name: 'findings: 20 000 tiny ones', path: PAYLOAD_PATH, expected: 'valid', isPackedOnly: true },
      body: () => filled(head('vulnerabilities', newer()), (i) => tiny(i + made), MAX_FINDINGS),
    },
    {
      ...{ name: 'components: 10 000, 8 MiB', path: SBOM_PATH, expected: 'valid', isPackedOnly: true },
      body: () => filled(head('components', newer()), (i) => part(i + made), MAX_COMPONENTS),
    },
  ] satisfies Attack[]
}
