/**
 * Sends hostile requests to every route, over real sockets to a real process. A seed determines the requests:
 * `FUZZ_SEED=<n>` repeats a run.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import net from 'node:net'
import { after, before, test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import type postgres from 'postgres'
import { routes } from '../../handlers/router.ts'
import { declaredRoutes } from '../../lib/http/access.ts'
import { MAX_CORE_BODY_BYTES } from '../../lib/limits/limits.ts'
import type { Scope } from '../../lib/openapi/declare.ts'
import { anyCharacter } from '../support/any-character.ts'
import {
  type Broker,
  connectTo,
  createDataDir,
  get,
  metric,
  request,
  residentMb,
  startBroker,
} from '../support/broker.ts'
import { depth } from '../support/depth.ts'
import { becomes, until } from '../support/until.ts'

const REQUESTS = depth(2_000, 100_000)
const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31)
const CLIENTS = 24
const CHUNK = 500
const LIMIT_MS = 900_000
/** The longest time that a request may go unanswered or a connection stay open. */
const SILENCE_MS = 120_000
const MAX_FAILURES = 5
const READ_BACK = 150
/** Limit of the server's heap; memory outside the heap is limited by the read budget. */
const HEAP_MB = 256
/** Greatest ratio of resident memory in the last quarter of the run to the second, with room for larger tables. */
const MAX_GROWTH = 1.5

const TOKENS = {
  BROKER_AUTH_TOKEN: 'fuzz-token-read-and-ingest',
  BROKER_TOKEN_READ: 'fuzz-token-read-only',
  BROKER_TOKEN_SUPPLYCHAIN: 'fuzz-token-supplychain',
}

// ---- Requests in a short form, rendered to bytes when sent ----------------------------------------------------------

/** Text, once or repeated. `#` is the number of the repetition; characters U+E000 to U+E0FF stand for single bytes. */
type Piece = string | { text: string; times: number }
type Text = Piece[]

/** Placeholder for the marker of a request, which links rows to answers. Both have the same length. */
const MARK = 'MARKERMARKER'
const MARKER = 'fz[0-9a-z]{10}'

const rawByte = (byte: number) => String.fromCharCode(0xe000 + byte)
const repeat = (text: string, times: number): Piece => ({ text, times })

interface Body {
  text: Text
  change: { kind: 'none' | 'cut' | 'flip' | 'insert' | 'append' | 'pad'; at: number; bytes: string }
  coding: 'none' | 'gzip' | 'cut gzip' | 'broken gzip' | 'gzip of gzip' | 'two members' | 'bomb' | 'no gzip'
}

interface ApiRequest {
  kind: 'api'
  method: string
  target: Text
  headers: Record<string, string>
  body: Body | null
  chunked: boolean
}

/** Bytes on their own connection. `answers` is the number of valid requests in them, null when there are none. */
interface RawRequest {
  kind: 'raw'
  what: 'noise' | 'broken' | 'pipelined' | 'cut' | 'flipped'
  parts: Text[]
  answers: number | null
  /** The share of the bytes that is sent. */
  cutAt: number
  reset: boolean
}

type FuzzRequest = ApiRequest | RawRequest

// ---- Hostile values -------------------------------------------------------------------------------------------------

/** Splits text into values at two blanks or a line end; `<ff>` is a byte. */
const values = (text: TemplateStringsArray): string[] =>
  text.raw
    .join('')
    .trim()
    .split(/\s{2,}/)
    .map(withBytes)
const withBytes = (text: string) => text.replace(/<([\da-f]{2})>/g, (_, hex) => rawByte(Number.parseInt(hex, 16)))

const either = <T>(...choices: [weight: number, arbitrary: fc.Arbitrary<T>][]): fc.Arbitrary<T> =>
  fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })))

const HOSTILE = values`
  null  true  false  0  -0  -1  0.1  1e400  -1e400  1e-400  9007199254740993  123456789012345678901234567890
  ""  " "  "\t\n"  "\u0000"  "a\u0000b"  "\ud800"  "x\udc00"  "\udc00\ud800"  "\ud83d\ude00"  "\uffff"  "\u2028"  "\u0085"  "\u200b"
  "\u0001"  "\u001f"  "a\u001f\u0001\u001fb"  "\u0001\u001f"  "\\"  "\""  "é"  "😀"
  []  {}  [[]]  [null]  {"a":1,"a":2}  {"":""}  {"\u0000":1}  {"\ud800":1}  {"__proto__":{"x":1}}  {"toString":1}
  {"constructor":{"prototype":{"x":1}}}  {"length":1e9}  [1,2  {"a"  "unended  NaN  Infinity  undefined  01  .5  +1
  'a'  "\x41"  "\u12"  /**/1  "<01>"  "<ff>"  "<c0><80>"  "<ed><a0><80>"  "<f5>"  "<e2><82>"
  "2026-01-01T00:00:00"  "2026-01-01T00:00:00Z"  "0001-01-01T00:00:00"  "9999-12-31T23:59:59.999999999"  "2026-02-30T00:00:00"
  "10.9.0.1"  "::ffff:10.9.0.1"  "2001:DB8:0:0::1"  "fe80::1%eth0"  "None"  "NULL"  "{}"  "{\"a\":1}"  "\\x41"  "0"  "UDP"
  "'; drop table pod; --"  "$1"  "%s"  "{{7*7}}"  "../../etc/passwd"  "<script>"  "MARKERMARKER"  "MARKERMARKER\u0000"`

const LENGTHS = [63, 64, 65, 127, 128, 129, 252, 253, 254, 1_000, 9_000]
const DEPTHS = [50, 99, 100, 101, 1_000, 20_000]

const hostile: fc.Arbitrary<Text> = either<Text>(
  [80, fc.constantFrom(...HOSTILE, '').map((text) => [text])],
  [15, fc.json({ maxDepth: 3 }).map((text) => [text])],
  [15, fc.string({ unit: anyCharacter, maxLength: 30 }).map((text) => [JSON.stringify(text)])],
  [
    25,
    fc
      .tuple(fc.constantFrom(...LENGTHS), fc.constantFrom(...values`x  é  €  😀  \u0001  \"  \u001f`, ' '))
      .map(([times, text]) => ['"', repeat(text, times), '"']),
  ],
  [2, fc.constantFrom(...DEPTHS).map((times) => [repeat('[', times), repeat(']', times)])],
  [2, fc.constantFrom(...DEPTHS).map((times) => [repeat('{"a":', times), '1', repeat('}', times)])],
  [
    1,
    fc.constantFrom<Text[]>(
      ['"', repeat('x', 300_000), '"'],
      ['[', repeat('0,', 100_000), '0]'],
      ['{', repeat('"#":0,', 20_000), '"a":0}'],
    ),
  ],
)

// ---- Valid bodies and their mutations -------------------------------------------------------------------------------

type Fields = Record<string, fc.Arbitrary<Text>>

const one = (texts: string[]): fc.Arbitrary<Text> => fc.constantFrom(...texts.map((text) => [text]))
const good = (text: TemplateStringsArray) => one(values(text))

const ADDRESS = good`"10.9.0.1"  "10.9.0.2"  "::ffff:10.9.0.3"  "2001:DB8::1"  "fd00::7"  "MARKERMARKER"  "MARKERMARKER"`
const TIME = good`"2026-01-01T00:00:00"  "2026-01-01T00:00:00.123456789"  "2026-06-30T12:00:00.5"`
const NAME = good`"MARKERMARKER"`

/** A manifest, sometimes with hostile values in its parts. */
const MANIFEST: fc.Arbitrary<Text> = fc
  .tuple(
    ...values`"uid-1"  {"app":"MARKERMARKER"}  {}  "web-0"  true  "2026-01-01T00:00:00Z"`.map((text) =>
      either([20, one([text])], [1, hostile]),
    ),
  )
  .map(([uid, labels, annotations, name, network, start]) => [
    ...[
      '{"kind":"Pod","metadata":{"uid":',
      ...uid!,
      ',"labels":',
      ...labels!,
      ',"annotations":',
      ...annotations!,
      ',"name":',
      ...name!,
    ],
    ...['},"spec":{"hostNetwork":', ...network!, '},"status":{"startTime":', ...start!, '}}'],
  ])

const DIGESTS = Array.from({ length: 4 }, (_, i) => `sha256:${String(i).repeat(64)}`)

/** Containers, sometimes with hostile values in their parts. */
const CONTAINERS: fc.Arbitrary<Text> = fc
  .array(
    fc
      .tuple(
        ...[
          values`"main"  "side"  "MARKERMARKER"`,
          values`"regular"  "init"  "Ephemeral"`,
          values`"registry/app:1"  "registry/app:2"  "MARKERMARKER"`,
          ['null', ...DIGESTS.map((one) => `"${one}"`)],
          values`"repo"  "config"  "pinned"`,
          values`"registry/app"  "MARKERMARKER"  null`,
          values`"1"  "2"  "MARKERMARKER"  null`,
          values`{"privileged":true,"capabilitiesAdd":["NET_ADMIN","A"],"runAsUser":0}  {}  null`,
          values`"running"  "waiting"  "terminated"  null`,
          values`"CrashLoopBackOff"  "Completed"  null`,
        ].map((texts) => either([20, one(texts)], [1, hostile])),
      )
      .map((members) => {
        const keys = [
          'name',
          'kind',
          'image',
          'digest',
          'digest_kind',
          'repository',
          'tag',
          'security_context',
          'state',
          'state_reason',
        ]
        return ['{', ...keys.flatMap((key, i): Text => [`${i > 0 ? ',' : ''}"${key}":`, ...members[i]!]), '}'] as Text
      }),
    { maxLength: 3 },
  )
  .map((items) => ['[', ...items.flatMap((text, i): Text => [i > 0 ? ',' : '', ...text]), ']'])

const FLOW: Fields = {
  uuid: good`"MARKERMARKER-#"`,
  pod_name: NAME,
  pod_namespace: good`"fuzz"  null`,
  pod_ip: ADDRESS,
  pod_port: good`"0"  "8080"`,
  ip_protocol: good`"TCP"  "UDP"  "ICMPv6"`,
  traffic_type: good`"EGRESS"  "INGRESS"`,
  traffic_in_out_ip: ADDRESS,
  traffic_in_out_port: good`"443"  "53"`,
  decision: good`"ALLOW"  "DROP"`,
  time_stamp: TIME,
  drop_cause: good`null  "no-policy"`,
  syn_retries: good`null  4`,
}

const POD: Fields = {
  pod_name: good`"MARKERMARKER"  "MARKERMARKER"  "fuzz-pool-1"  "fuzz-pool-2"`,
  pod_ip: ADDRESS,
  time_stamp: TIME,
  node_name: good`"MARKERMARKER"  "node-1"`,
  is_dead: good`false  true`,
  pod_namespace: good`"fuzz"  null`,
  pod_obj: either([3, MANIFEST], [1, good`null`]),
  pod_identity: good`"MARKERMARKER"  null`,
  workload_selector_labels: good`{"app":"MARKERMARKER"}  null`,
  pod_ips: good`null  ["10.9.0.1","MARKERMARKER"]  ["fd00::7",1,null,""]`,
  workload_kind: good`"Deployment"  null`,
  workload_name: good`"MARKERMARKER"  null`,
  capture_level: good`"high"  null  " FULL "`,
  host_network: good`true  null`,
  started_at: good`null  "2025-12-31T00:00:00"`,
  containers: either([3, CONTAINERS], [1, good`null  []  [{"name":"main","image":"registry/app:1"}]`]),
  pod_security: either(
    [
      3,
      good`null  {}  {"serviceAccountName":"MARKERMARKER","hostPID":true,"securityContext":{"runAsUser":1000,"fsGroup":2}}`,
    ],
    [1, hostile],
  ),
}

const SERVICE: Fields = {
  svc_ip: either([6, ADDRESS], [1, good`"None"  ""`]),
  time_stamp: TIME,
  svc_name: NAME,
  svc_namespace: good`"fuzz"  null`,
  service_spec: either([3, MANIFEST], [1, good`null`]),
}

const SYSCALLS: Fields = {
  pod_name: good`"MARKERMARKER"  "fuzz-pool-1"  " "`,
  pod_namespace: good`"fuzz"`,
  syscalls: good`["read","write"]  []  ["openat","MARKERMARKER"]`,
  arch: good`"x86_64"`,
  time_stamp: TIME,
}

const FACTS: Fields = {
  node_name: good`"MARKERMARKER"  "node-1"`,
  provider: good`"aws"  "MARKERMARKER"`,
  distro: good`"eks"`,
  cni: good`"cilium"  "unknown"`,
  ip_family: good`"ipv4"  "dual"`,
  node_os: good`"cos"`,
  policy_enforcement: good`"enforced"  null`,
  time_stamp: either([3, TIME], [1, good`null`]),
}

const IMAGE = values`
  {"digest":"DIGEST","repository":"team/app","tag":"v1"}
  {"digest":"DIGEST","digest_kind":"index","platform_manifests":{"linux/amd64":"OTHER","x":"y"},"index_digest":"OTHER","ref":"MARKERMARKER"}`
const PAYLOAD: Fields = {
  schema_version: good`1`,
  image: one(IMAGE.map((text) => text.replaceAll('DIGEST', DIGESTS[0]!).replaceAll('OTHER', DIGESTS[1]!))),
  source: good`"operator-scanner"  "grype"  "registry"`,
  scanned_at: good`"2026-01-01T00:00:00Z"  "2026-01-01T00:00:00.123456789+02:00"  "0001-01-01T00:00:00Z"  "2026-03-01T00:00:00Z"`,
  scanner: good`null  {}  {"name":"MARKERMARKER","vendor":"v","version":"1"}`,
  observed_in: good`null  []  [{"namespace":"fuzz","kind":"ReplicaSet","name":"web-abc12","container":"main"}]`,
  sbom_trust: good`null  "scanned"  "MARKERMARKER"`,
}

/** A list of objects, sometimes with hostile members. */
const listOf = (fields: Record<string, string[]>): fc.Arbitrary<Text> =>
  fc
    .array(fc.tuple(...Object.values(fields).map((texts) => either([30, one(texts)], [1, hostile]))), { maxLength: 4 })
    .map((items) => [
      '[',
      ...items.flatMap(
        (members, i): Text => [
          i > 0 ? ',{' : '{',
          ...Object.keys(fields).flatMap((key, k): Text => [`${k > 0 ? ',' : ''}"${key}":`, ...members[k]!]),
          '}',
        ],
      ),
      ']',
    ])

const DISTRIBUTION = '{"ready":1,"total":2,"state":"Partial","summary":"1/2"}'
const CR: Fields = {
  spec: good`
    {"defaultAction":"SCMP_ACT_ERRNO","architectures":["SCMP_ARCH_ARM64","MARKERMARKER"],"syscalls":[{"names":["read","MARKERMARKER"]}]}
    {"syscalls":[{"names":["write"],"action":"SCMP_ACT_ERRNO","errnoRet":1}],"workloadRef":{"kind":"Deployment","name":"MARKERMARKER"}}  {}`,
  hash: good`"MARKERMARKER"  ""  null`,
  distribution: one(['null', DISTRIBUTION]),
  status: one(['null', '{}', `{"distribution":${DISTRIBUTION}}`]),
}

const NODE_FILES: Fields = {
  node_name: good`"MARKERMARKER"  "node-1"`,
  files: either(
    [
      3,
      listOf({
        path: values`"kguardian/fuzz/MARKERMARKER.json"  "kguardian/fuzz/a.json"`,
        hash: values`"h1"  null  ""`,
      }),
    ],
    [1, good`null  []`],
  ),
  paths: good`null  []  ["kguardian/fuzz/a.json","kguardian/fuzz/b.json",7,null]`,
}

const FINDINGS: Fields = {
  ...PAYLOAD,
  os: good`null  {}  {"family":"debian","name":"12","eosl":true}`,
  db_updated_at: good`null  "2026-01-01T00:00:00Z"`,
  sbom_sources: good`null  "registry"  ["operator-scanner","node"]`,
  vulnerabilities: listOf({
    id: values`"CVE-2026-1"  "CVE-2026-2"  "MARKERMARKER"`,
    package: values`{"name":"zlib","version":"1"}  {"name":"curl","version":"8","type":"deb","purl":"pkg:deb/curl@8"}`,
    fixed_version: values`"2"  null  ""`,
    severity: values`"HIGH"  " low"  "MARKERMARKER"`,
    status: values`"affected"  " wont-fix"  null`,
    score: values`9.8  null  1e400`,
    cvss: values`{}  null  {"nvd":{"v3_score":9.8,"v3_vector":"x"}}  {"__proto__":{"v3_score":1}}`,
    title: values`"MARKERMARKER"  null`,
    published_at: values`"2026-01-01T00:00:00Z"  null`,
    file_paths: values`["a","a"]  null  []`,
    kev: values`true  false  null`,
    epss: values`0.5  2  null`,
  }),
}

const SBOM: Fields = {
  ...PAYLOAD,
  format: good`"CycloneDX"  null`,
  attestation: good`null  {}  {"mechanism":"oci-referrer","verified":false}`,
  page: good`null  {"set_id":"a","index":0,"total":2}  {"set_id":"a","index":1,"total":2}  {"set_id":"MARKERMARKER","index":0,"total":1}`,
  components: listOf({
    name: values`"zlib"  "MARKERMARKER"`,
    version: values`"1"  null`,
    type: values`"deb"  "operating-system"  null`,
    licenses: values`["MIT"]  null`,
    file_paths: values`["a"]  null`,
  }),
}

const SIGNED = {
  format: values`"cosign-bundle"  "cosign-legacy"  "MARKERMARKER"`,
  source: values`"referrers"  null  ""`,
  verified: values`true  true  false  null`,
  error: values`null  "bad_signature"  "untrusted_key"  "a_new_code"`,
  detail: values`null  "dial tcp 10.9.0.1:443 MARKERMARKER"  "token=abc"`,
  signer_kind: values`null  "keyless"  "key"`,
  issuer: values`"https://issuer.test"  "https://issuer.test"  ""`,
  san: values`"MARKERMARKER"`,
  key_fingerprint: values`null  "abab"`,
  key_pem: values`null  "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"`,
  integrated_time: values`null  "2026-01-01T00:00:00.5+02:00"`,
  tlog_index: values`null  7  9223372036854775807`,
}

/** A signature that makes a result verified, whatever the other signatures are. */
const SIGNATURE = '{"format":"bundle","verified":true,"issuer":"i","san":"s"}'

const RESULT: Fields = {
  schema_version: good`1`,
  digest: one([`"${DIGESTS[0]!}"`]),
  repository: good`"MARKERMARKER"`,
  checked_at: good`"2026-01-01T00:00:00Z"  "2026-01-01T00:00:00.123456789+02:00"  "0001-01-01T00:00:00Z"  "2026-03-01T00:00:00Z"`,
  verdict: either([9, good`"verified"`], [1, good`"unknown"  "unsigned"  "invalid"  "key_signed"`]),
  reason: good`null  "timeout"  "a_new_code"`,
  trust_root: good`null  "public-good"`,
  signatures: listOf(SIGNED).map(([open, ...rest]) => [open!, SIGNATURE, rest.length > 1 ? ',' : '', ...rest]),
  attestations: either(
    [3, listOf({ ...SIGNED, predicate_type: values`"p"`, provenance: values`null  {"builder_id":"MARKERMARKER"}` })],
    [1, good`null`],
  ),
}

const SYSCALL = values`"read"  "openat2"  "on"  "Read"  "MARKERMARKER"`

const EXPORT: Fields = {
  name: good`"MARKERMARKER"  null  ""`,
  defaultAction: good`"SCMP_ACT_LOG"  "SCMP_ACT_ERRNO"  null`,
  format: good`"yaml"  "json"  null`,
  acknowledgePartial: good`true  "yes"  false  null`,
  add: fc.array(fc.constantFrom(...SYSCALL), { maxLength: 3 }).map((names) => [`[${names.join()}]`]),
  remove: good`[]  ["write"]  null`,
}

const HEARTBEAT: Fields = {
  pod_namespace: good`"shop"  "MARKERMARKER"`,
  pod_name: good`"MARKERMARKER"  "fuzz-pool-1"`,
  workload_kind: good`"Deployment"  null`,
  workload_name: good`"MARKERMARKER"  null`,
  container_name: good`"app"  "MARKERMARKER"`,
  image_digest: one(['""', 'null', ...DIGESTS.map((digest) => `"${digest}"`)]),
  container_id: good`"c1"  "MARKERMARKER"`,
  node_name: good`"node-1"  "MARKERMARKER"`,
  mode: good`"full"  "exec"`,
  exec_probe: good`true  false`,
  lib_probe: good`true  false`,
  start_mode: good`"start"  "backfill"`,
  tracking_since: good`"2026-01-01T00:00:00.123456789"  "0001-01-01T00:00:00"`,
  probe_attached_at: good`"2026-01-01T00:00:00"  "9999-12-31T23:59:59.999999"  null`,
  events_dropped: good`0  7  9007199254740993  1e300  null`,
  unsent: good`0  1e300  null`,
  incomplete: good`true  false  null`,
  ended: good`false  true  null`,
  heartbeat_at: good`"2026-01-02T00:00:00"  "9999-12-31T23:59:59"  "0001-01-01T00:00:00"`,
  heartbeat_secs: good`300  1  86400`,
  cap_probe: good`true  false  null`,
  cap_hook: good`"cap_capable"  "security_capable"  null`,
}

const CHECKS: Fields = {
  pod_namespace: good`"shop"  "MARKERMARKER"`,
  pod_name: good`"MARKERMARKER"  "fuzz-pool-1"  null`,
  workload_kind: good`"Deployment"  "Pod"`,
  workload_name: good`"MARKERMARKER"`,
  container_name: good`"app"  "MARKERMARKER"`,
  image_digest: one(['""', 'null', ...DIGESTS.map((digest) => `"${digest}"`)]),
  capability: good`"NET_ADMIN"  "CAP_63"`,
  granted: good`true  false`,
  probed: good`true  false  null`,
  count: good`0  7  9007199254740993  9223372036854775807`,
  first_seen: good`"2026-01-01T00:00:00.123456789"  "0001-01-01T00:00:00"`,
  last_seen: good`"2026-01-02T00:00:00"  "9999-12-31T23:59:59.999999"`,
}

const DRAIN: Fields = {
  node: good`"MARKERMARKER"  "node-1"`,
  capturing: good`true  true  false`,
  intervalSeconds: good`10  600  86400  0`,
  denials: listOf({
    podUid: values`"MARKERMARKER"  "uid-1"`,
    podName: values`"MARKERMARKER"  "fuzz-pool-1"`,
    podNamespace: values`"shop"  "MARKERMARKER"`,
    syscall: values`"ptrace"  "bpf"  "MARKERMARKER"`,
    syscallNr: values`101  null  -1`,
    action: values`"SCMP_ACT_ERRNO"  "SCMP_ACT_LOG"`,
    actionRaw: values`327681  null  9223372036854775807`,
    arch: values`"SCMP_ARCH_ARM64"  null  ""`,
    count: values`1  7  1000000000000  0`,
    firstSeen: values`"2026-01-01T00:00:00.123456789Z"  "2026-01-01T00:00:00+02:00"  null`,
    lastSeen: values`"2026-01-02T00:00:00Z"  "9999-12-31T23:59:59Z"  "0001-01-01T00:00:00Z"`,
  }),
}

const EXECUTABLE: Fields = {
  pod_namespace: good`"shop"  "MARKERMARKER"`,
  pod_name: good`"MARKERMARKER"  null  ""`,
  workload_kind: good`"Deployment"  null`,
  workload_name: good`"MARKERMARKER"  null`,
  container_name: good`"app"  "MARKERMARKER"`,
  image_digest: one(['""', 'null', ...DIGESTS.map((digest) => `"${digest}"`)]),
  kind: good`"exec"  "lib"  "LIB"`,
  path: good`"/bin/MARKERMARKER"  "{\""  "NULL"`,
  path_complete: good`true  false  null`,
  source: good`"ebpf"  "backfill"`,
  origin: good`"image"  "memfd"  "elsewhere"  null`,
  first_seen: good`"2026-01-01T00:00:00.123456789"  "0001-01-01T00:00:00"`,
  last_seen: good`"2026-01-02T00:00:00"  "9999-12-31T23:59:59.999999"`,
}

const SAMPLES: Fields = {
  node: good`"MARKERMARKER"  "node-1"`,
  ts: good`"2026-01-01T00:00:00Z"  "2026-01-01T00:00:00.5+02:00"  "9999-12-31T23:59:59Z"`,
  interval_ms: good`5000  1  300000`,
  ctxt_per_sec: good`1200.5  0`,
  compute_enabled: good`true  false`,
  node_pressure: good`{"cpu_some10":1.5}  {}`,
  bpf_occupancy: good`{"pair":7,"pair_update_failures":1}  null`,
  containers: listOf({
    container_uid: values`"MARKERMARKER/app"  "uid-1/app"`,
    pod_uid: values`"MARKERMARKER"  "uid-1"`,
    pod_name: values`"MARKERMARKER"  "fuzz-pool-1"`,
    namespace: values`"shop"  "fuzz"`,
    container: values`"app"  "MARKERMARKER"`,
    cgroup_id: values`4711  18446744073709551615  9007199254740993  -1`,
    cpu: values`{"usage_usec":500000,"psi_some10":12.5,"quota_usec":null}  {"period_usec":5e-324,"usage_usec":1e300}  {}`,
    memory: values`{"current":300000000,"limit":1e15}  {"oom_kill":-1}`,
    runq: values`null  {"count":5,"p99_us":1500,"hist":[1,2]}`,
    blame: values`[]  null  [{"cgroup_id":18446744073709551615,"kind":"pod","ref":"a/b/c","container_uid":null,"count":1,"wait_ns":9}]  [{"kind":"\u0000","ref":"x"},7]`,
  }),
}

const MINUTES: Fields = {
  node: good`"MARKERMARKER"  "node-1"`,
  ts: good`"2026-01-01T00:00:00Z"  "2026-01-01T00:00:00.5+02:00"  "9999-12-31T23:59:59Z"  "0001-01-01T00:00:00Z"`,
  interval_ms: good`60000  1`,
  resolution_secs: good`60  300  1`,
  containers: listOf({
    container_uid: values`"MARKERMARKER/app"  "uid-1/app"`,
    pod_uid: values`"MARKERMARKER"  "uid-1"`,
    pod_name: values`"MARKERMARKER"  "fuzz-pool-1"`,
    namespace: values`"shop"  "fuzz"`,
    container: values`"app"  "MARKERMARKER"`,
    cpu: values`{"usage_millis":{"avg":1.5,"max":1e300,"last":5e-324},"psi_some10":{"avg":1}}  {"usage_millis":7}  {}`,
    memory: values`{"current":{"avg":300000000.5},"limit":1e15}  {"oom_kill":-1}`,
    runq: values`null  {"count":5,"p99_us":1500,"hist":[1,2]}  {"hist":[]}  {"hist":["x",1e300,null]}`,
    blame: values`[]  null  [{"cgroup_id":18446744073709551615,"kind":"pod","ref":"a/b/c","container_uid":null,"count":1,"wait_ns":9}]  [{"kind":"\u0000","ref":"x"},7]`,
  }),
}

/** The members of the body of each route that takes one; `list` when the body is a list of such objects. */
const TEMPLATES: Record<string, { fields: Fields; list?: true }> = {
  '/pod/spec': { fields: POD },
  '/pod/mark_dead': {
    fields: { pod_name: good`"MARKERMARKER"  "fuzz-pool-1"`, pod_ip: either([3, ADDRESS], [1, good`null`]) },
  },
  '/pod/traffic': { fields: FLOW },
  '/pod/traffic/batch': { fields: FLOW, list: true },
  '/pod/syscalls': { fields: SYSCALLS, list: true },
  '/node/facts': { fields: FACTS },
  '/seccomp/crs/:namespace/:name': { fields: CR },
  '/seccomp/node-status': { fields: NODE_FILES },
  '/svc/spec': { fields: SERVICE },
  '/images/:digest/vulnerabilities': { fields: FINDINGS },
  '/images/:digest/sbom': { fields: SBOM },
  '/images/:digest/attestation': { fields: RESULT },
  '/seccomp/profiles/:namespace/:kind/:name/export': { fields: EXPORT },
  '/networkpolicy/try': {
    fields: {
      apiVersion: good`"networking.k8s.io/v1"`,
      kind: good`"NetworkPolicy"`,
      metadata: good`{"name":"fuzz"}  {"name":"fuzz","namespace":"fuzz"}`,
      spec: good`{"podSelector":{}}  {"podSelector":{"matchLabels":{"a":"b"}},"egress":[{"to":[{"ipBlock":{"cidr":"::/0"}}]}]}`,
    },
  },
  '/vulnerabilities/:id/decision': {
    fields: {
      scope: either(
        [
          4,
          one([
            ...values`{"type":"all"}  {"type":"namespace","namespace":"fuzz"}  {"type":"repository","repository":"team/app"}`,
            '{"type":"workload","namespace":"fuzz","kind":"Deployment","name":"MARKERMARKER"}',
            `{"type":"image","digest":"${DIGESTS[0]}"}`,
          ]),
        ],
        [1, hostile],
      ),
      package: good`null  "openssl"  "pkg:deb/debian/MARKERMARKER@1%3A2?arch=amd64"  "pkg:"`,
      decision: good`"accepted"  "will_not_fix"  "affected"  null`,
      justification: good`null`,
      until: good`null  "2999-12-31"`,
      by: NAME,
      why: NAME,
    },
  },
  '/vex': {
    fields: {
      '@context': good`"https://openvex.dev/ns/v0.2.0"`,
      '@id': good`"MARKERMARKER"  "urn:fuzz"`,
      author: NAME,
      timestamp: good`"2026-01-01T00:00:00Z"  "2999-01-01T00:00:00+02:00"`,
      version: good`1  2  0  9007199254740991`,
      statements: either(
        [
          4,
          listOf({
            vulnerability: values`{"name":"CVE-2026-1"}  {"name":"MARKERMARKER","aliases":["CVE-2026-2"]}  {"name":""}`,
            status: values`"affected"  "not_affected"  "fixed"  "MARKERMARKER"`,
            justification: values`null  "component_not_present"`,
            products: [
              `[{"@id":"pkg:oci/app@${DIGESTS[0]}","subcomponents":[{"@id":"openssl"},{"@id":"pkg:deb/a%"}]}]`,
              '[{"@id":"pkg:npm/MARKERMARKER@1"}]',
              '[]',
              'null',
            ],
          }),
        ],
        [1, hostile],
      ),
    },
  },
  // The route ignores its body, but a client may send one.
  '/seccomp/profiles/:namespace/:kind/:name/reset': { fields: { name: NAME } },
  '/runtime/capabilities': { fields: CHECKS, list: true },
  '/runtime/coverage': { fields: HEARTBEAT, list: true },
  '/seccomp/denials': { fields: DRAIN },
  '/runtime/executables': { fields: EXECUTABLE, list: true },
  '/pod/compute/batch': { fields: SAMPLES },
  '/pod/compute/history/batch': { fields: MINUTES },
}

const STRANGERS = values`__proto__  constructor  toString  unknown  \u0000  \ud800  POD_NAME  peer_name`

/** A valid object with up to two changes: a member is replaced, left out, repeated, or an unknown one is added. */
function object(fields: Fields): fc.Arbitrary<Text> {
  const keys = Object.keys(fields)
  const change = fc.record({
    how: fc.constantFrom('replace', 'replace', 'replace', 'drop', 'again', 'stranger'),
    key: fc.constantFrom(...keys),
    stranger: fc.constantFrom(...STRANGERS, ''),
    value: hostile,
  })
  return fc
    .tuple(fc.tuple(...keys.map((key) => fields[key]!)), fc.array(change, { maxLength: 2 }))
    .map(([values, changes]) => {
      const members: [key: string, value: Text][] = keys.map((key, i) => [key, values[i]!])
      for (const { how, key, stranger, value } of changes) {
        const at = members.findIndex(([one]) => one === key)
        if (how === 'replace' && at >= 0) members[at] = [key, value]
        else if (how === 'drop' && at >= 0) members.splice(at, 1)
        else members.push([how === 'stranger' ? stranger : key, value])
      }
      return ['{', ...members.flatMap(([key, value], i) => [`${i > 0 ? ',' : ''}"${key}":`, ...value]), '}']
    })
}

const list = (item: fc.Arbitrary<Text>): fc.Arbitrary<Text> =>
  fc
    .array(item, { maxLength: 4 })
    .map((items) => ['[', ...items.flatMap((text, i) => [i > 0 ? ',' : '', ...numbered(text, i)]), ']'])

/** Fills the `#` of an element, so that the uuids of one body differ. */
const numbered = (text: Text, n: number): Text =>
  text.map((piece) => (typeof piece === 'string' ? piece.replaceAll('#', String(n)) : piece))

/** 1001 valid flows. */
const LONG_LIST: Text = [
  '[',
  repeat(
    `{"uuid":"${MARK}-#","pod_name":"${MARK}","pod_ip":"10.9.1.1","pod_port":"#","time_stamp":"2026-01-01T00:00:00"},`,
    1_000,
  ),
  `{"uuid":"${MARK}","time_stamp":"2026-01-01T00:00:00"}]`,
]

function bodyText(path: string): fc.Arbitrary<Text> {
  const { fields, list: isList } = TEMPLATES[path] ?? { fields: { name: NAME } }
  const [right, wrong] = isList ? [list(object(fields)), object(fields)] : [object(fields), list(object(fields))]
  return either<Text>(
    [120, right],
    [6, wrong],
    [10, hostile],
    [4, fc.string({ unit: anyCharacter, maxLength: 60 }).map((text) => [text])],
    [
      1,
      fc.constantFrom<Text[]>(
        [''],
        [' \r\n\t '],
        ['\ufeff{}'],
        [repeat('[', 200_000)],
        [repeat('{"a":', 200_000)],
        LONG_LIST,
      ),
    ],
  )
}

const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

const body = (path: string): fc.Arbitrary<Body> =>
  fc.record({
    text: bodyText(path),
    change: either<Body['change']>(
      [12, fc.constant({ kind: 'none', at: 0, bytes: '' })],
      [
        3,
        fc.record({
          kind: fc.constantFrom('cut', 'flip', 'insert', 'append'),
          at: share,
          bytes: fc.constantFrom(...values`00  ff  c080  eda080  f5808080  e282  efbbbf  1f  7d  2c  0a`),
        }),
      ],
    ),
    coding: either<Body['coding']>(
      [40, fc.constant('none')],
      [6, fc.constantFrom('gzip', 'cut gzip', 'broken gzip', 'gzip of gzip', 'two members', 'no gzip')],
    ),
  })

/** Bodies at and above the limit, and small ones that unpack to far more. Rare: each costs as much as 1000 others. */
const hugeBody: fc.Arbitrary<Body> = either<Body>(
  [
    3,
    fc.constantFrom(MAX_CORE_BODY_BYTES, MAX_CORE_BODY_BYTES + 1, MAX_CORE_BODY_BYTES * 2).map((size) => ({
      text: [`{"x":"${MARK}"}`],
      change: { kind: 'pad', at: size, bytes: '20' },
      coding: 'none',
    })),
  ],
  [1, fc.constant({ text: [], change: { kind: 'none', at: 0, bytes: '' }, coding: 'bomb' })],
)

// ---- Targets and headers --------------------------------------------------------------------------------------------

/** RECENT is replaced with the name of a pod that was accepted recently. */
const PARAMETERS = values`
  RECENT  RECENT  RECENT  fuzz-pool-1  10.9.0.1  %3A%3Affff%3A10.9.0.1  2001:db8::1  node-1  nobody  .  ..  %2e%2e  %2E  ...  %00  a%00b
  %  %zz  %2  %ff%fe  %ed%a0%80  %c0%80  %2F  %252F  %5c  \  *  :name  {name}  +  %20  %0d%0a  %e2%82%ac  é  ~  '  "  <  |  ^  $1  ;x=1
  @  &  =  #  ?`

const parameter = either<Text>(
  [1, fc.constantFrom(...DIGESTS).map((text) => [text])],
  [12, fc.constantFrom(...PARAMETERS, '').map((text) => [text])],
  [2, fc.string({ unit: anyCharacter, maxLength: 20 }).map((text) => [encodeURIComponent(text)])],
  [1, fc.constantFrom(300, 3_000, 10_000, 20_000).map((times) => [repeat('x', times)])],
  [1, fc.constantFrom(300, 1_000).map((times) => [repeat('%f0%9f%98%80', times)])],
)

/** Mostly the image of the generated payloads. */
const digestParameter = either<Text>([8, fc.constant([DIGESTS[0]!])], [2, fc.constant([DIGESTS[1]!])], [2, parameter])

/** Mostly the workload that has a profile. */
const workloadParameter = either<Text>([8, fc.constant(['fuzz'])], [2, parameter])

const parameterOf = (pattern: string) => {
  if (pattern.includes(':digest')) return digestParameter
  return pattern.startsWith('/seccomp/profiles/') ? workloadParameter : parameter
}

const pathOf = (pattern: string): fc.Arbitrary<Text> =>
  fc
    .tuple(
      fc.array(parameterOf(pattern), { minLength: 2, maxLength: 2 }),
      either([12, fc.constant('')], [1, fc.constantFrom(...values`/  //  /.  /..  %00  %2f  %  ;  \  x`)]),
      either([15, fc.constant('')], [1, fc.constantFrom(...values`/  /.  /..  /%2e%2e  /%2e  http://x  \ `)]),
    )
    .map(([parameters, suffix, prefix]) => [
      prefix,
      ...pattern
        .split('/')
        .flatMap(
          (segment, i): Text => [i > 0 ? '/' : '', ...(segment.startsWith(':') ? parameters[i % 2]! : [segment])],
        ),
      suffix,
    ])

const QUERY_KEYS = values`
  name  defaultAction  format  acknowledgePartial  limit  at  include_dead  policy  namespace  verdict  direction  after  repository  severity  fixable  source  running  window_hours  limit[]
  __proto__  x  %00`
const QUERY_VALUES = values`
  SCMP_ACT_KILL  json  1  10  -5  +3  Allow  Egress  0  007  1e3  0x10  99999999999999999999  abc  null  NaN  1.5  %31  %00  %  %zz  %ff  true  false  maybe  TRUE  '  %27;--  []
  {}  é  2026-01-01T00:00:00  2026-01-01T00:00:00Z  2026-01-01T00:00:00%2B02:00  0001-01-01T00:00:00%2B23:59  9999-12-31T23:59:59-23:59
  2026-13-01T00:00:00  fuzz  sha256:0000  HIGH,low  registry  WzEsIkNWRS0yMDI2LTEiXQ  WzEsIkNWRS0yMDI2LTEiLCJ6bGliIiwiMSJd`

const query = either<Text>(
  [6, fc.constant([])],
  [
    4,
    fc
      .array(fc.tuple(fc.constantFrom(...QUERY_KEYS), fc.constantFrom(...QUERY_VALUES, ...DIGESTS, '')), {
        minLength: 1,
        maxLength: 3,
      })
      .map((pairs) => [`?${pairs.map(([key, value]) => `${key}=${value}`).join('&')}`]),
  ],
  [
    1,
    fc.constantFrom<Text[]>(
      ['?'],
      ['??'],
      ['?&&&=&'],
      ['?', repeat('a=1&', 2_000)],
      ['?limit=', repeat('9', 10_000)],
      ['?at=', repeat('2', 3_000)],
    ),
  ],
)

const CONTENT_TYPES = values`
  application/json; charset=utf-8  APPLICATION/JSON  application/vnd.x+json  application/json;charset=utf-16  text/plain  text/json  */*  ;
  application/x-www-form-urlencoded  multipart/form-data; boundary=x  application/jsonp  application/json, text/plain  application/xml`
const CODINGS = values`deflate  br  zstd  x-gzip  gzip, gzip  identity  GZIP  chunked  __proto__`

const STRANGE_HEADERS: [name: string, value: string][] = [
  ...values`x  ../../etc  éÿ  ';--`
    .concat('', 'a'.repeat(64), 'b'.repeat(65))
    .map((value): [string, string] => ['x-request-id', value]),
  ...values`gzip  gzip;q=0  *  identity;q=0  gzip;q=abc  br, gzip;q=0.5`
    .concat(','.repeat(2_000))
    .map((value): [string, string] => ['accept-encoding', value]),
  ...values`example.org  a b  [::1]  [::1  x:99999  x:  a@b  é  x/../y`
    .concat('')
    .map((value): [string, string] => ['host', value]),
  ...values`100-continue  the-unexpected`.map((value): [string, string] => ['expect', value]),
  ...values`upgrade  x-http-method-override  x-forwarded-for  if-none-match  range  origin  __proto__`.map(
    (name): [string, string] => [name, 'websocket'],
  ),
  ['connection', 'close'],
  ['cookie', 'a=b; '.repeat(500)],
  ['x-big', 'x'.repeat(12_000)],
  ['x-huge', 'x'.repeat(20_000)],
]

type TokenUse = 'right' | 'none' | 'read' | 'wrong' | 'basic' | 'double' | 'empty' | 'long'
const tokenUse = either<TokenUse>(
  [40, fc.constant('right')],
  [3, fc.constantFrom('none', 'read', 'wrong', 'basic', 'double', 'empty', 'long')],
)

function authorization(scope: Scope, use: TokenUse): Record<string, string> {
  const right = scope === 'supplychain' ? TOKENS.BROKER_TOKEN_SUPPLYCHAIN : TOKENS.BROKER_AUTH_TOKEN
  const sent: Record<TokenUse, string> = {
    right: `Bearer ${right}`,
    none: '',
    read: `bearer ${TOKENS.BROKER_TOKEN_READ}`,
    wrong: 'Bearer no-such-token-at-all',
    basic: `Basic ${right}`,
    double: `Bearer Bearer ${right}`,
    empty: 'Bearer ',
    long: `Bearer ${'x'.repeat(9_000)}`,
  }
  return use === 'none' ? {} : { authorization: sent[use] }
}

// ---- Requests of a route --------------------------------------------------------------------------------------------

interface Target {
  method: string
  path: string
  scope: Scope
}

const TARGETS: Target[] = [...declaredRoutes(routes.flatMap((one) => one.routes))].map(([key, scope]) => {
  const [method, path] = key.split(' ') as [string, string]
  return { method, path, scope }
})

/** Whether a route reads a whole table, which costs a thousand times as much as other requests. */
const isList = ({ method, path }: Target) => method === 'GET' && !path.includes(':') && path !== '/health'

const OTHER_METHODS = values`HEAD  OPTIONS  PUT  DELETE  PATCH  TRACE  PROPFIND  SEARCH  POST  GET`

function apiRequest({ method, path, scope }: Target): fc.Arbitrary<FuzzRequest> {
  return fc
    .record({
      method: either([20, fc.constant(method)], [1, fc.constantFrom(...OTHER_METHODS)]),
      path: pathOf(path),
      query,
      token: tokenUse,
      strange: either<[string, string][]>(
        [8, fc.constant([])],
        [1, fc.array(fc.constantFrom(...STRANGE_HEADERS), { minLength: 1, maxLength: 2 })],
      ),
      type: either([15, fc.constant('application/json')], [1, fc.constantFrom(...CONTENT_TYPES, '')]),
      coding: either<string | null>([20, fc.constant(null)], [1, fc.constantFrom(...CODINGS, '')]),
      body:
        method === 'GET'
          ? either<Body | null>([30, fc.constant(null)], [1, body(path)])
          : either<Body | null>([600, body(path)], [1, hugeBody]),
      chunked: either([9, fc.constant(false)], [1, fc.constant(true)]),
    })
    .map(
      (r): ApiRequest => ({
        kind: 'api',
        method: r.method,
        target: [...r.path, ...r.query],
        headers: {
          ...authorization(scope, r.token),
          ...(r.body ? { 'content-type': r.type } : {}),
          ...(r.body && r.body.coding !== 'none' ? { 'content-encoding': 'gzip' } : {}),
          ...(r.coding === null ? {} : { 'content-encoding': r.coding }),
          ...Object.fromEntries(r.strange),
        },
        body: r.body,
        chunked: r.chunked,
      }),
    )
}

// ---- Raw bytes: broken, cut and pipelined requests ------------------------------------------------------------------

/** Replaces `|` with a line end. */
const wire = (text: string) => text.replaceAll('|', '\r\n')

const HEAD = `Host: x|Authorization: Bearer ${TOKENS.BROKER_AUTH_TOKEN}|`
const JSON_FLOW = `{"uuid":"${MARK}","pod_name":"${MARK}","pod_ip":"${MARK}","pod_port":"0","traffic_type":"EGRESS","traffic_in_out_ip":"${MARK}","traffic_in_out_port":"1","decision":"ALLOW","time_stamp":"2026-01-01T00:00:00"}`
const SIZE = JSON_FLOW.length
const POST = `POST /pod/traffic HTTP/1.1|${HEAD}Content-Type: application/json|`
const CHUNKED = `${POST}Transfer-Encoding: chunked||`

/** No answer to any of these may be a success. */
const BROKEN: string[] = [
  ...values`
    GET||  GET /||  GET / HTTP/9.9||  GET / HTTP/1.1 x||  / GET HTTP/1.1||  HTTP/1.1 200 OK||  PRI * HTTP/2.0||SM||  EHLO x|  ||||  {"uuid":"x"}||
    GET /health HTTP/1.1||  GET /hea lth HTTP/1.1|Host: x||  GET /health<00> HTTP/1.1|Host: x||  get /health HTTP/1.1|Host: x||
    GET /health HTTP/1.1|Host x||  GET /health HTTP/1.1|Host : x||  GET /health HTTP/1.1|Host: x|A<00>B: c||  GET /health HTTP/1.1|Host: x|: y||
    GET /health HTTP/1.1|Host: x|A: b<00>c||  GET /health HTTP/1.1<0d>Host: x<0d><0d>  XYZZY /health HTTP/1.1|Host: x||
    CONNECT x:1 HTTP/1.1|Host: x||  PROXY TCP4 1.2.3.4 5.6.7.8 1 2|  <16><03><01><02><00><01><00><01><fc><03><03>  <00><00><00><08><04><d2><16><2f>`,
  `GET /health HTTP/1.1|Host: x|${'Some-Name: some value|'.repeat(2_000)}|`,
  `GET /health HTTP/1.1|Host: x|A: ${'b'.repeat(20_000)}||`,
  `GET /${'x'.repeat(20_000)} HTTP/1.1|Host: x||`,
  ...values`-1  +5  0x10  1e3  5, 6  5 5  abc  99999999999999999999999  18446744073709551621  5<00>`.map(
    (n) => `${POST}Content-Length: ${n}||${JSON_FLOW}`,
  ),
  `${POST}Content-Length: ${SIZE}|Content-Length: ${SIZE + 1}||${JSON_FLOW}`,
  ...[-10, 10, 10 ** 9].map((more) => `${POST}Content-Length: ${SIZE + more}||${JSON_FLOW}`),
  `${POST}|${JSON_FLOW}`,
  ...values`chunked, identity  xchunked  chunked<0b>  identity`.map(
    (coding) => `${POST}Transfer-Encoding: ${coding}||${SIZE.toString(16)}|${JSON_FLOW}|0||`,
  ),
  `${POST}Content-Length: ${SIZE}|Transfer-Encoding: chunked||${SIZE.toString(16)}|${JSON_FLOW}|0||`,
  ...values`zz  -1  ffffffffffffffffff  0x5  5`
    .concat('', `1;${'x'.repeat(20_000)}`)
    .map((size) => `${CHUNKED}${size}|${JSON_FLOW}|0||`),
  ...[-7, 7].map((more) => `${CHUNKED}${(SIZE + more).toString(16)}|${JSON_FLOW}|0||`),
  `${CHUNKED}${SIZE.toString(16)}|${JSON_FLOW}|`,
].map(wire)

/** Valid requests; `end` is the last header. */
const HONEST: ((end: string) => string)[] = (
  [
    (end) => `GET /health HTTP/1.1|Host: x|${end}|`,
    (end) => `GET /pod/name/nobody HTTP/1.1|${HEAD}${end}|`,
    (end) => `GET /pod/traffic?limit=1 HTTP/1.1|${HEAD}${end}|`,
    (end) => `GET /no/such/route HTTP/1.1|Host: x|${end}|`,
    (end) => `GET /pod/name/%00 HTTP/1.1|${HEAD}${end}|`,
    (end) => `${POST}Content-Length: ${SIZE}|${end}|${JSON_FLOW}`,
    (end) => `${POST}Content-Length: ${SIZE - 1}|${end}|${JSON_FLOW.slice(1)}`,
    (end) => `${POST}Expect: 100-continue|Content-Length: ${SIZE}|${end}|${JSON_FLOW}`,
    (end) =>
      `POST http://other.example/pod/traffic HTTP/1.1|${HEAD}Content-Type: application/json|Content-Length: ${SIZE}|${end}|${JSON_FLOW}`,
    (end) => `${POST}Transfer-Encoding: chunked|${end}|${SIZE.toString(16)};a=b|${JSON_FLOW}|0|Trailer: x||`,
    (end) =>
      `${POST}Transfer-Encoding: chunked|${end}|7|${JSON_FLOW.slice(0, 7)}|${(SIZE - 7).toString(16)}|${JSON_FLOW.slice(7)}|0||`,
  ] satisfies ((end: string) => string)[]
).map((make) => (end: string) => wire(make(end)))

const CLOSE = 'Connection: close|'
const honest = fc.constantFrom(...HONEST)

const raw = (what: RawRequest['what'], parts: string[]): RawRequest => ({
  kind: 'raw',
  what,
  parts: parts.map((part) => [part]),
  answers: null,
  cutAt: 1,
  reset: false,
})

const rawRequest = either<FuzzRequest>(
  [2, fc.uint8Array({ maxLength: 80 }).map((bytes) => raw('noise', [[...bytes].map(rawByte).join('')]))],
  [6, fc.constantFrom(...BROKEN).map((text) => raw('broken', [text]))],
  [
    4,
    fc.array(honest, { minLength: 1, maxLength: 6 }).map((some) => ({
      ...raw(
        'pipelined',
        some.map((make, i) => make(i === some.length - 1 ? CLOSE : '')),
      ),
      answers: some.length,
    })),
  ],
  [
    4,
    fc
      .record({ make: honest, cutAt: share, reset: fc.boolean() })
      .map(({ make, cutAt, reset }) => ({ ...raw('cut', [make('')]), cutAt, reset })),
  ],
  [
    2,
    fc
      .record({ make: honest, at: share, byte: fc.nat(255) })
      .map(({ make, at, byte }) => raw('flipped', [flipped(make(CLOSE), at, byte)])),
  ],
)

function flipped(text: string, at: number, byte: number): string {
  const index = Math.floor(at * text.length)
  return `${text.slice(0, index)}${rawByte(byte)}${text.slice(index + 1)}`
}

const anyRequest: fc.Arbitrary<FuzzRequest> = either(
  ...TARGETS.map((target): [number, fc.Arbitrary<FuzzRequest>] => [
    isList(target) ? 1 : /^(POST|PUT)$/.test(target.method) ? 60 : 25,
    apiRequest(target),
  ]),
  [45, rawRequest],
)

// ---- Rendering to bytes ---------------------------------------------------------------------------------------------

let serial = 0

/** A marker with a checksum: a flipped bit does not turn it into another valid marker. */
function nextMarker(): string {
  const digits = (serial++).toString(36).padStart(7, '0')
  return `fz${digits}${checksum(digits)}`
}

function checksum(digits: string): string {
  let sum = 7
  for (const digit of digits) sum = (sum * 131 + digit.charCodeAt(0)) % 46_656
  return sum.toString(36).padStart(3, '0')
}

const isMarker = (text: string) => checksum(text.slice(2, 9)) === text.slice(9)

function written(text: Text, marker: string): string {
  return text
    .map((piece) => {
      if (typeof piece === 'string') return piece
      if (!piece.text.includes('#')) return piece.text.repeat(piece.times)
      return Array.from({ length: piece.times }, (_, i) => piece.text.replaceAll('#', String(i))).join('')
    })
    .join('')
    .replaceAll(MARK, marker)
}

function bytesOf(text: string): Buffer {
  if (!/[\ue000-\ue0ff]/.test(text)) return Buffer.from(text)
  return Buffer.concat(
    text
      .split(/([\ue000-\ue0ff])/)
      .map((part) => (/^[\ue000-\ue0ff]$/.test(part) ? Buffer.of(part.charCodeAt(0) - 0xe000) : Buffer.from(part))),
  )
}

const BOMB = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '))

function bodyBytes({ text, change, coding }: Body, marker: string): Buffer {
  let plain = bytesOf(written(text, marker))
  const at = Math.floor(change.at * plain.length)
  const bytes = Buffer.from(change.bytes, 'hex')
  if (change.kind === 'cut') plain = plain.subarray(0, at)
  else if (change.kind === 'insert') plain = Buffer.concat([plain.subarray(0, at), bytes, plain.subarray(at)])
  else if (change.kind === 'append') plain = Buffer.concat([plain, bytes])
  else if (change.kind === 'pad') plain = Buffer.concat([plain, Buffer.alloc(change.at - plain.length, bytes)])
  else if (change.kind === 'flip' && plain.length > 0) plain[Math.min(at, plain.length - 1)]! ^= bytes[0]! | 1
  if (coding === 'bomb') return BOMB
  if (coding === 'none' || coding === 'no gzip') return plain
  const packed = gzipSync(plain, { level: 1 })
  if (coding === 'cut gzip') return packed.subarray(0, Math.floor(packed.length * 0.7))
  if (coding === 'gzip of gzip') return gzipSync(packed, { level: 1 })
  if (coding === 'two members') return Buffer.concat([packed, gzipSync(' ')])
  if (coding === 'broken gzip') packed[packed.length >> 1]! ^= 0x55
  return packed
}

// ---- Sending, and checking the answers ------------------------------------------------------------------------------

interface Reply {
  status: number
  headers: http.IncomingHttpHeaders
  text: string
  /** False after a retry: the first request may have been executed or not. */
  isFirstTry?: boolean
}

let broker: Broker
let agent: http.Agent
let sql: postgres.Sql

const outcomes = new Map<number | 'none', number>()
/** Markers of refused requests, which may not be in any table. */
const refused = new Set<string>()
const accepted = { pods: new Set<string>(), services: new Set<string>(), flows: new Set<string>(), rows: 0 }
/** Names of accepted pods for use in later requests. */
const recent: string[] = []
/** Markers of requests whose outcome is unknown, such as those whose connection ended before an answer. */
const unanswered = new Set<string>()

async function send(one: FuzzRequest): Promise<string | null> {
  return one.kind === 'api' ? sendApi(one) : sendRaw(one)
}

async function sendApi(one: ApiRequest): Promise<string | null> {
  const marker = nextMarker()
  const target = written(one.target, marker).replaceAll('RECENT', () =>
    encodeURIComponent(recent[serial % recent.length] ?? 'nobody'),
  )
  const content = one.body && bodyBytes(one.body, marker)
  let reply: Reply
  try {
    reply = await exchange(one, target, content)
  } catch (error) {
    count('none')
    unanswered.add(marker)
    // The server may end the connection before the answer is read when a header or a body is too large.
    const { code, message } = error as NodeJS.ErrnoException
    return ['ECONNRESET', 'EPIPE', 'HPE_INVALID_CONSTANT'].includes(code ?? '') && mayBeCut(one, content)
      ? null
      : `no answer: ${code ?? ''} ${message}`
  }
  count(reply.status)
  if (reply.status >= 400 && reply.status < 500) refused.add(marker)
  else if (reply.status !== 200 || !reply.isFirstTry) unanswered.add(marker)
  else if (one.method === 'POST') noteAccepted(target.split('?')[0]!, reply.text)
  return complaint(reply, one.method)
}

const mayBeCut = (one: ApiRequest, content: Buffer | null) =>
  (content?.length ?? 0) > 64 * 1024 || JSON.stringify(one.headers).length > 8_000

/** Sockets with an error handler: one may break after the answer, while the rest of a body is sent. */
const quiet = new WeakSet<net.Socket>()

/** A connection may end just as it is used again, after a body that was refused unread, but not repeatedly. */
const MAX_TRIES = 3

function exchange(one: ApiRequest, target: string, content: Buffer | null, tries = 1): Promise<Reply> {
  // Without either header Node sends the body of some methods unframed, and the server reads it as another request.
  const length =
    content === null ? {} : one.chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': content.length }
  return new Promise((resolve, reject) => {
    const outgoing = http.request({
      agent: tries > 1 ? false : agent,
      host: '127.0.0.1',
      port: broker.port,
      method: one.method,
      // Node refuses these characters in a path, so they are sent percent-encoded.
      path: target.replace(/[^\x21-\xff]/g, encodeURIComponent) || '/',
      headers: { ...one.headers, ...length },
      setHost: one.headers.host === undefined,
      timeout: SILENCE_MS,
    })
    outgoing.on('timeout', () => outgoing.destroy(new Error('silence')))
    outgoing.on('socket', (socket) => {
      if (!quiet.has(socket)) socket.on('error', () => {})
      quiet.add(socket)
    })
    outgoing.on('error', (error) => {
      if (tries < MAX_TRIES && (error as NodeJS.ErrnoException).code === 'ECONNRESET' && !mayBeCut(one, content))
        exchange(one, target, content, tries + 1).then(resolve, reject)
      else reject(error)
    })
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk) => chunks.push(chunk))
      incoming.on('error', reject)
      incoming.on('end', () => {
        const content = Buffer.concat(chunks)
        // An answer to HEAD announces an encoding but has no content.
        const isPacked = incoming.headers['content-encoding'] === 'gzip' && content.length > 0
        const text = (isPacked ? gunzipSync(content) : content).toString()
        resolve({ status: incoming.statusCode!, headers: incoming.headers, text, isFirstTry: tries === 1 })
      })
    })
    if (content && one.chunked)
      for (let at = 0; at < content.length; at += 1 + (content.length >> 2))
        outgoing.write(content.subarray(at, at + 1 + (content.length >> 2)))
    outgoing.end(content && !one.chunked ? content : undefined)
  })
}

/** Sends bytes and reads until the server closes. */
async function sendRaw(one: RawRequest): Promise<string | null> {
  const markers = one.parts.map(nextMarker)
  const all = Buffer.concat(
    one.parts.map((part, i) =>
      bytesOf(written(part, markers[i]!).replace(/[\x80-\xff]/g, (c) => rawByte(c.charCodeAt(0)))),
    ),
  )
  const sent = one.cutAt === 1 ? all : all.subarray(0, Math.floor(all.length * one.cutAt))
  const received = await converse(sent, one)
  if (received === null) return `the connection stayed open for ${SILENCE_MS} ms`
  const replies = answersIn(received)
  for (const { status } of replies) count(status)
  if (replies.length === 0) count('none')
  const problem = replies.map((reply) => complaint(reply, 'GET')).find((text) => text !== null)
  if (problem) return problem
  const statuses = replies.map(({ status }) => status)
  if (one.answers !== null) {
    if (replies.length !== one.answers) return `${one.answers} requests had the answers ${statuses}`
    for (const [i, { status, text }] of replies.entries()) {
      if (status >= 400 && status < 500) refused.add(markers[i]!)
      else if (status === 200 && text.startsWith('{"uuid"')) noteAccepted('/pod/traffic', text)
      else unanswered.add(markers[i]!)
    }
    return null
  }
  const success = statuses.some((status) => status < 300)
  // A request that is cut short was never complete, with an answer or without.
  if (!success && (statuses.length > 0 || one.what === 'cut' || one.what === 'broken'))
    for (const marker of markers) refused.add(marker)
  else for (const marker of markers) unanswered.add(marker)
  if ((one.what === 'broken' || one.what === 'noise' || one.what === 'cut') && success)
    return `no request at all had the answers ${statuses}`
  return null
}

function converse(bytes: Buffer, { answers, reset }: RawRequest): Promise<Buffer | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = net.connect({ host: '127.0.0.1', port: broker.port, noDelay: true })
    const timer = setTimeout(() => {
      resolve(null)
      socket.destroy()
    }, SILENCE_MS)
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(Buffer.concat(chunks))
    })
    socket.on('connect', () => {
      if (answers !== null) socket.write(bytes)
      else if (reset) socket.write(bytes, () => socket.resetAndDestroy())
      else socket.end(bytes)
    })
  })
}

function answersIn(received: Buffer): Reply[] {
  const replies: Reply[] = []
  for (let at = 0; at < received.length; ) {
    const headEnd = received.indexOf('\r\n\r\n', at)
    const [statusLine = '', ...lines] = received
      .subarray(at, headEnd < 0 ? received.length : headEnd)
      .toString('latin1')
      .split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1] ?? 599)
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    const length = headers['content-length']
    const end =
      headEnd < 0 || (length === undefined && status >= 200) ? received.length : headEnd + 4 + Number(length ?? 0)
    if (status >= 200) replies.push({ status, headers, text: received.subarray(headEnd + 4, end).toString() })
    at = end
  }
  return replies
}

const SQL = /\b(select|insert|update|delete|values|returning|relation|column|syntax|constraint|pg_\w+|postgres)\b|\$\d/i

/** Describes what is wrong with an answer to any request; null when nothing is. */
function complaint({ status, headers, text }: Reply, method: string): string | null {
  if (status >= 500 && status !== 503) return `status ${status}: ${text.slice(0, 300)}`
  if (status === 503 && headers['retry-after'] === undefined) return `503 without Retry-After: ${text.slice(0, 300)}`
  if (status === 503 && SQL.test(text)) return `an error that tells of the database: ${text.slice(0, 300)}`
  if (
    status === 200 &&
    method !== 'HEAD' &&
    headers['content-type'] === 'application/json' &&
    headers['content-encoding'] === undefined
  ) {
    try {
      JSON.parse(text)
    } catch {
      return `not JSON: ${text.slice(0, 300)}`
    }
  }
  return null
}

/** Notes what was stored according to an answer of 200. */
function noteAccepted(path: string, text: string): void {
  // An export is YAML, and stores nothing.
  if (text === '' || path.endsWith('/export')) return
  const answer = JSON.parse(text)
  if (path.endsWith('/traffic/batch')) accepted.rows += answer
  else if (path.endsWith('/traffic') && answer !== null && answer.uuid !== undefined) {
    accepted.rows++
    accepted.flows.add(answer.uuid)
  } else if (path.endsWith('/pod/spec') && answer.pod_name.trim() !== '') {
    accepted.pods.add(answer.pod_name)
    recent[accepted.pods.size % 64] = answer.pod_name
  } else if (path.endsWith('/svc/spec') && answer.svc_ip !== '' && answer.svc_ip !== 'None')
    accepted.services.add(answer.svc_ip)
}

function count(outcome: number | 'none'): void {
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
}

// ---- The run --------------------------------------------------------------------------------------------------------

const sampleChunk = (chunk: number) => fc.sample(anyRequest, { seed: SEED + chunk, numRuns: CHUNK })

function* allRequests(): Generator<{ one: FuzzRequest; chunk: number; index: number; number: number }> {
  let number = 0
  for (let chunk = 0; number < REQUESTS; chunk++) {
    for (const [index, one] of sampleChunk(chunk).entries()) {
      if (number >= REQUESTS) return
      yield { one, chunk, index, number: number++ }
    }
  }
}

/** Finds the smallest request that still fails. */
async function shrunk(chunk: number, index: number): Promise<string> {
  const property = fc.asyncProperty(anyRequest, async (one) => assert.equal(await send(one), null))
  const result = await fc.check(property, { seed: SEED + chunk, path: String(index), interruptAfterTimeLimit: 20_000 })
  return result.counterexample
    ? JSON.stringify(result.counterexample[0]).slice(0, 2_000)
    : 'it passes when it is sent alone'
}

before(async () => {
  const dataDir = createDataDir()
  // Without jobs: they would delete the generated rows, whose times are long ago, before the tests read them.
  broker = await startBroker({
    dataDir,
    nodeArgs: [`--max-old-space-size=${HEAP_MB}`],
    env: { ...TOKENS, JOBS: 'external' },
  })
  sql = connectTo(dataDir)
  await sql`insert into image select unnest(string_to_array(${DIGESTS.join()}, ',')), null, '{}', 'repo', now(), now()`
  await sql`
    insert into workload_syscalls
    values ('fuzz', 'fuzz', 'fuzz', ${['\u0001', '435', 'on', 'read'].join()}, '{x86_64,"a\nb"}', '0123456789abcdef', 4, now())`
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, pod_obj, time_stamp, node_name, is_dead, pod_ips, workload_kind, workload_name, capture_level)
    values ('fuzz-workload-0', '', 'fuzz', '{}', now(), 'node-1', true, '{}', 'fuzz', 'fuzz', 'full')`
  await sql`insert into pod_syscalls (pod_name, pod_namespace, syscalls, arch, time_stamp) values ('fuzz-workload-0', 'fuzz', 'on,read', 'x86_64', now())`
  await sql`
    insert into pod_instance (pod_name, pod_namespace, instance, workload_kind, workload_name, capture_level, level_since, first_post, last_post,
                              first_seen, last_seen)
    values ('fuzz-workload-0', 'fuzz', '', 'fuzz', 'fuzz', 'full', now(), now(), now(), now(), now())`
  await sql`
    insert into syscall_contribution (pod_name, pod_namespace, instance, workload_kind, workload_name, syscalls, arches, capture_level, level_at,
                                      seen_until)
    values ('fuzz-workload-0', 'fuzz', '', 'fuzz', 'fuzz', 'on,read', '{x86_64}', 'full', now(), now())`
  agent = new http.Agent({ keepAlive: true, maxSockets: CLIENTS })
})

after(async () => {
  agent.destroy()
  await sql.end({ timeout: 1 })
})

/** Routes that ignore a body. */
const WITHOUT_BODY = ['/workloads/:namespace/:kind/:name/export']

test('every route with a request body has a template here, and a valid body made from it is accepted', async () => {
  const takesBody = ({ method }: Target) => method === 'POST' || method === 'PUT'
  const bare = TARGETS.filter((one) => takesBody(one) && !TEMPLATES[one.path] && !WITHOUT_BODY.includes(one.path)).map(
    ({ path }) => path,
  )
  assert.deepEqual(bare, [], 'add valid bodies of these routes to TEMPLATES')
  for (const [pattern, { fields, list: isList }] of Object.entries(TEMPLATES)) {
    const path = pattern.replace(':digest', DIGESTS[0]!).replace(/:(namespace|kind|name)\b/g, 'fuzz')
    const { scope, method } = TARGETS.find((one) => takesBody(one) && one.path === pattern)!
    const members = Object.entries(fields).map(
      ([key, value]) => `"${key}":${written(fc.sample(value, { seed: 1, numRuns: 1 })[0]!, 'valid')}`,
    )
    const text = `{${members.join(',')}}`
    const answer = await request(`${broker.url}${path}`, {
      method,
      body: isList ? `[${text}]` : text,
      headers: authorization(scope, 'right'),
    })
    assert.ok([200, 201, 202].includes(answer.status), `${path}: ${answer.text}`)
    noteAccepted(path, answer.text)
  }
})

test(`${REQUESTS} requests, seed ${SEED}: no status above 499 but 503, and memory grows by less than half`, {
  timeout: LIMIT_MS,
}, async (t) => {
  const failures: { what: string; one: FuzzRequest; chunk: number; index: number }[] = []
  const memory: number[][] = [[], [], [], []]
  const requests = allRequests()
  const client = async () => {
    for (const { one, chunk, index, number } of requests) {
      if (failures.length >= MAX_FAILURES || broker.hasExited) return
      const what = await send(one)
      if (what !== null) failures.push({ what, one, chunk, index })
      if (number % 50 === 0) {
        const resident = residentMb(broker.pid)
        if (resident) memory[Math.floor((number * 4) / REQUESTS)]!.push(resident.now)
      }
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  const shown = failures.map(({ what, one }) => `${what}\n    ${JSON.stringify(one).slice(0, 1_500)}`)
  assert.equal(broker.hasExited, false, `FUZZ_SEED=${SEED}: the broker is gone: ${broker.stderr}\n${shown.join('\n')}`)
  if (failures.length > 0) {
    const { chunk, index } = failures[0]!
    assert.fail(`FUZZ_SEED=${SEED}\n${shown.join('\n')}\nsmallest form of the first: ${await shrunk(chunk, index)}`)
  }

  const errors = broker.log.filter(({ level }) => level === 'error' || level === 'fatal')
  assert.deepEqual(errors.slice(0, MAX_FAILURES), [], `FUZZ_SEED=${SEED}`)
  assert.equal(broker.stderr, '', `FUZZ_SEED=${SEED}`)
  t.diagnostic(`answers: ${JSON.stringify(Object.fromEntries(outcomes))}`)
  t.diagnostic(`stored: ${accepted.pods.size} pods, ${accepted.services.size} services, ${accepted.rows} flows`)
  // A server that sheds every request must not pass.
  assert.ok((outcomes.get(503) ?? 0) < REQUESTS / 100, `${outcomes.get(503)} requests were shed`)
  assert.ok((outcomes.get(200) ?? 0) > REQUESTS / 10, `${outcomes.get(200)} requests were served`)

  const [, second, , last] = memory.map(median)
  t.diagnostic(`resident: ${memory.map((quarter) => Math.round(median(quarter))).join(', ')} MiB by quarter`)
  if (second && last)
    assert.ok(last < second * MAX_GROWTH, `FUZZ_SEED=${SEED}: resident memory grew from ${second} to ${last} MiB`)
})

test('nothing of a refused request is stored, and all accepted pods, services and flows are', async () => {
  const tables = await sql<{ name: string }[]>`
    select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables
    where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`
  assert.ok(tables.length >= 4)
  for (const { name } of tables) {
    const found = await sql.unsafe<{ marker: string }[]>(
      `select distinct m[1] as marker from ${name} t, regexp_matches(t::text, '${MARKER}', 'g') m`,
    )
    const wrong = found.map(({ marker }) => marker).filter((marker) => isMarker(marker) && refused.has(marker))
    assert.deepEqual(wrong, [], `FUZZ_SEED=${SEED}: ${name} holds what was refused`)
  }

  const pods = new Set((await sql`select pod_name from pod`).map(({ pod_name }) => pod_name))
  assert.deepEqual(
    [...accepted.pods].filter((name) => !pods.has(name)).slice(0, 5),
    [],
    `FUZZ_SEED=${SEED}: accepted pods are missing`,
  )
  const services = new Set((await sql`select svc_ip from service`).map(({ svc_ip }) => svc_ip))
  assert.deepEqual(
    [...accepted.services].filter((ip) => !services.has(ip)).slice(0, 5),
    [],
    `FUZZ_SEED=${SEED}: accepted services are missing`,
  )
  const flows = await sql<{ uuid: string; markers: string[] | null }[]>`
    select uuid, (select json_agg(m[1]) from regexp_matches(t::text, ${MARKER}, 'g') m) as markers from traffic t`
  const uuids = new Set(flows.map(({ uuid }) => uuid))
  assert.deepEqual(
    [...accepted.flows].filter((uuid) => !uuids.has(uuid)).slice(0, 5),
    [],
    `FUZZ_SEED=${SEED}: accepted flows are missing`,
  )
  const answered = flows.filter(({ markers }) => !markers?.some((marker) => unanswered.has(marker)))
  assert.equal(answered.length, accepted.rows, `FUZZ_SEED=${SEED}: rows, and rows that answers told of`)
})

test('pods, services, flows, syscalls, nodes and the number of node facts can be read over HTTP', async () => {
  const headers = authorization('read', 'right')
  // URL parsers remove dot segments of a path (RFC 3986, 5.2.4).
  const names = spread([...accepted.pods].filter((name) => name !== '.' && name !== '..'))
  for (const name of names) {
    const { status, json } = await get(`${broker.url}/pod/name/${encodeURIComponent(name)}`, { headers })
    assert.equal(status, 200, `FUZZ_SEED=${SEED}: ${JSON.stringify(name)}`)
    assert.equal(json.pod_name, name)
  }
  for (const ip of spread([...accepted.services].filter((ip) => ip !== '.' && ip !== '..'))) {
    const { status, json } = await get(`${broker.url}/svc/ip/${encodeURIComponent(ip)}`, { headers })
    assert.equal(status, 200, `FUZZ_SEED=${SEED}: ${JSON.stringify(ip)}`)
    assert.equal(json.svc_ip, ip)
  }
  const flows = await sql<
    { uuid: string; pod_name: string }[]
  >`select uuid, pod_name from traffic where pod_name is not null and pod_name not in ('', '.', '..')`
  for (const { uuid, pod_name } of spread([...flows])) {
    const { status, json } = await get(`${broker.url}/pod/traffic/${encodeURIComponent(pod_name)}`, { headers })
    assert.equal(status, 200, `FUZZ_SEED=${SEED}: ${JSON.stringify(pod_name)}`)
    assert.ok(json.some((row: { uuid: string }) => row.uuid === uuid))
  }
  const list = await get(`${broker.url}/pod/traffic?limit=20000`, { headers })
  assert.equal(list.json.length, Math.min(20_000, (await sql`select from traffic`).count))
  const records = await sql<{ pod_name: string }[]>`select pod_name from pod_syscalls where pod_name not in ('.', '..')`
  for (const { pod_name } of spread([...records])) {
    const { status, json } = await get(`${broker.url}/pod/syscalls/${encodeURIComponent(pod_name)}`, { headers })
    assert.equal(status, 200, `FUZZ_SEED=${SEED}: ${JSON.stringify(pod_name)}`)
    assert.equal(json[0].pod_name, pod_name)
  }
  const nodes = await sql<{ node: string }[]>`select node_name as node from pod union select node from compute_node`
  const { json } = await get(`${broker.url}/node/status`, { headers })
  const sorted = (all: { node: string }[]) => all.map(({ node }) => node).sort()
  assert.deepEqual(sorted(json.nodes), sorted([...nodes]), `FUZZ_SEED=${SEED}`)
  const environment = await get(`${broker.url}/cluster/environment`, { headers })
  assert.equal(environment.json.nodes, (await sql`select from node_facts`).count, `FUZZ_SEED=${SEED}`)
})

test('after the run the server is healthy and the read budget is free', async () => {
  await becomes(async () => (await get(`${broker.url}/health`)).status, 200)
  await until(
    'the read budget is free',
    async () =>
      (await metric(broker, 'broker_read_budget_kib_available')) ===
      (await metric(broker, 'broker_read_budget_kib_total')),
  )
})

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0
}

/** Picks about READ_BACK elements, evenly from the whole list. */
function spread<T>(all: T[]): T[] {
  const step = Math.max(1, Math.floor(all.length / READ_BACK))
  return all.filter((_, i) => i % step === 0)
}
