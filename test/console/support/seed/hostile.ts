/**
 * Records in which every text from outside is hostile: markup, bidirectional and invisible characters, script URLs,
 * formulas, and names of the maximum length. Pages must show all of it as text.
 */
import { createHash } from 'node:crypto'
import type { Site } from './site.ts'

/** Sets `window.hostile` if a page runs it. */
const RUN = 'window.hostile=1'
export const MARKUP = `"'><img src=x onerror=${RUN}></script><script>${RUN}</script>`
export const BIDI = 'safe\u202egnp.exe\u2066\u200b\u200d\u2069 \u0301e\u0007'
/** The broker refuses a slash in the names of addresses, so only the names of one label have one. */
const MARKUP_NAME = `"'><img src=x onerror=${RUN}><svg onload=${RUN}>`
export const SLASH = 'slash'
export const RUNNING_URL = `javascript:${RUN}`
export const FORMULA = '=1+1,"x"\n@SUM(A1)'
const LONG_CHARS = 10_000

/** Hostile texts by a short name, which is in every record made from them. */
export const HOSTILE_TEXTS: Readonly<Record<string, string>> = {
  markup: MARKUP,
  bidi: BIDI,
  url: RUNNING_URL,
  formula: FORMULA,
  [SLASH]: `a/../b"'><img src=x onerror=${RUN}></b>`,
  template: '{{constructor.constructor("alert(1)")()}}#{7*7}%00../../etc/passwd',
  long: 'W'.repeat(LONG_CHARS),
  words: `${'word '.repeat(LONG_CHARS / 5)}end`,
}

const COUNT = Object.keys(HOSTILE_TEXTS).length

const NAMES: Readonly<Record<string, string>> = {
  markup: MARKUP_NAME,
  template: '{{constructor.constructor("alert(1)")()}}#{7*7}%00..%2f..%2fetc',
}

/** The text of which names are made, by label. */
export const nameTextOf = (label: string): string => NAMES[label] ?? HOSTILE_TEXTS[label]!

/** Limits of the contract, in bytes. */
const [NAME, KIND, ID, WORD, REFERENCE, URL, TITLE, PATH] = [253, 63, 128, 64, 1_024, 2_048, 512, 4_096]
const ARBITRARY = LONG_CHARS

/** The longest prefix of a text that fits, in whole characters. */
function fit(text: string, maxBytes: number): string {
  let bytes = 0
  let kept = ''
  for (const character of text) {
    bytes += Buffer.byteLength(character)
    if (bytes > maxBytes) break
    kept += character
  }
  return kept.trim()
}

/** An id of a vulnerability without blanks, as pages need it. A finding of each image has a hostile id as well. */
export const idOf = (n: number, i: number) => `HOSTILE-${n}-${i}`
const digestOf = (text: string) => `sha256:${createHash('sha256').update(`hostile ${text}`).digest('hex')}`
const DAY_SECS = 86_400

/** Posts a workload, and all data about it, with one hostile text. */
function recordsOf(site: Site, label: string, text: string, n: number) {
  const nameText = nameTextOf(label)
  const name = fit(nameText, NAME)
  const podName = fit(`${label} ${nameText}`, NAME)
  const kind = fit(nameText, KIND)
  const [uid, ip, node] = [fit(`${n} ${text}`, ID), `10.9.0.${n + 1}`, fit(`node ${nameText}`, NAME)]
  const digest = digestOf(label)
  // The broker keeps no reference with control characters.
  const reference = text.replace(/\p{Cc}/gu, '')
  const key = { pod_namespace: name, workload_kind: kind, workload_name: name, container_name: name }
  const [since, now] = [site.ago(3 * DAY_SECS), site.ago(60)]
  const computed = {
    ...{ container_uid: fit(`${n}/${text}`, ID), pod_uid: uid, pod_name: podName, namespace: name, container: name },
  }
  const blame = [{ kind: 'pod', ref: fit(text, REFERENCE), container_uid: uid, count: 9, wait_ns: 3_000_000_000 }]
  const image = {
    digest,
    ref: fit(text, REFERENCE),
    registry: fit(text, 256),
    repository: fit(text, NAME),
    tag: fit(text, ID),
  }
  const header = {
    ...{ schema_version: 1, source: 'operator-scanner', scanned_at: site.zonedAgo(DAY_SECS), image },
    scanner: { name: fit(text, WORD), vendor: fit(text, WORD), version: fit(text, WORD) },
    os: { family: fit(text, WORD), name: fit(text, WORD) },
    observed_in: [{ namespace: name, kind, name, container: name }],
  }
  const pack = { name: fit(text, NAME), version: fit(text, ID), type: fit(text, WORD), purl: fit(text, REFERENCE) }
  return {
    pod: {
      ...{ pod_name: podName, pod_namespace: name, pod_ip: ip, node_name: node, is_dead: false, time_stamp: now },
      ...{ started_at: since, workload_kind: kind, workload_name: name, pod_identity: name, capture_level: 'full' },
      workload_selector_labels: { app: text, [fit(text, ARBITRARY)]: text },
      containers: [
        {
          ...{ name, kind: 'regular', image: fit(reference, REFERENCE), digest, digest_kind: 'repo' },
          ...{
            repository: fit(reference, TITLE),
            tag: fit(reference, ID),
            state: 'waiting',
            state_reason: fit(text, WORD),
          },
          security_context: { capabilitiesAdd: [fit(text, WORD)], seccompProfileType: fit(text, WORD) },
        },
        { name: 'runs', kind: 'regular', image: 'x', digest, digest_kind: 'repo', repository: name, state: 'running' },
      ],
      pod_security: { serviceAccountName: name },
      pod_obj: {
        metadata: {
          ...{ name: podName, uid, labels: { app: text, [text]: text }, annotations: { [text]: text } },
          ownerReferences: [{ kind, name }],
        },
        spec: { containers: [{ name, ports: [{ name, containerPort: 80 }] }] },
      },
    },
    service: {
      ...{ svc_namespace: name, svc_name: name, svc_ip: `10.97.0.${n + 1}`, time_stamp: now },
      service_spec: {
        metadata: { name, namespace: name, uid, labels: { [text]: text } },
        spec: { selector: { app: text }, ports: [{ name, port: 80, targetPort: name }] },
      },
    },
    flows: ['ALLOW', 'DROP', fit(text, WORD)].map((decision, i) => ({
      uuid: fit(`${n}-${i} ${text}`, 100),
      ...{ pod_name: podName, pod_namespace: name, pod_ip: ip, pod_port: '0', traffic_type: 'EGRESS' },
      traffic_in_out_ip: i === 2 ? fit(text, 100) : `10.9.0.${((n + 1) % COUNT) + 1}`,
      traffic_in_out_port: i === 2 ? fit(text, 30) : '80',
      ...{ ip_protocol: i === 2 ? fit(text, 30) : 'TCP', decision, drop_cause: i > 0 ? fit(text, WORD) : null },
      time_stamp: site.ago(DAY_SECS / 2 + i),
    })),
    syscalls: {
      pod_name: podName,
      pod_namespace: name,
      syscalls: ['read', 'write'],
      arch: fit(text, WORD),
      time_stamp: now,
    },
    facts: {
      ...{ node_name: node, provider: fit(text, WORD), distro: fit(text, WORD), cni: fit(text, WORD) },
      ...{ ip_family: fit(text, WORD), node_os: fit(text, WORD), policy_enforcement: 'unknown' },
    },
    drain: {
      ...{ node, capturing: true, intervalSeconds: 60 },
      denials: [
        { podUid: uid, podName, podNamespace: name, syscall: fit(text, ID), action: fit(text, WORD), count: 2 },
      ],
    },
    files: ['exec', 'lib'].map((kindOfFile) => ({
      ...{ ...key, pod_name: podName, image_digest: digest, kind: kindOfFile, path: `/${fit(text, PATH - 1)}` },
      ...{ path_complete: true, source: 'ebpf', origin: 'writableLayer', first_seen: since, last_seen: now },
    })),
    heartbeat: {
      ...{ ...key, pod_name: podName, image_digest: digest, container_id: `c0ffee${n}`, node_name: node },
      ...{ mode: 'full', exec_probe: true, lib_probe: true, start_mode: 'start', tracking_since: since },
      ...{ heartbeat_at: now, heartbeat_secs: 86_400 },
    },
    capability: {
      ...{ ...key, pod_name: podName, image_digest: digest, capability: 'SYS_ADMIN', granted: false, count: 2 },
      ...{ first_seen: since, last_seen: now },
    },
    sample: {
      ...{ node, ts: site.zonedAgo(2), interval_ms: 5_000, contention_loaded: true },
      node_capacity: { cpu_cores: 4, memory_bytes: 2 ** 34 },
      containers: [{ ...computed, cpu: { usage_usec: 900_000, psi_some10: 60 }, memory: { current: 9e7 }, blame }],
    },
    minutes: [20, 80, 140, 200].map((ago) => ({
      ...{ node, ts: site.zonedAgo(ago) },
      containers: [
        {
          ...{ ...computed, memory: {}, runq: { count: 900, p99_us: 40_000, max_us: 90_000 }, blame },
          cpu: { usage_millis: { avg: 200, max: 300 }, request_millis: 500, psi_some10: { avg: 60, max: 80 } },
        },
      ],
    })),
    findings: {
      ...header,
      vulnerabilities: ['CRITICAL', 'HIGH', 'LOW'].map((severity, i) => ({
        ...{
          id: i === 0 ? fit(`${idOf(n, i)} ${nameText}`, ID) : idOf(n, i),
          aliases: [fit(`${i} ${text}`, ID)],
          severity,
          package: pack,
        },
        ...{
          fixed_version: fit(text, TITLE),
          title: fit(text, TITLE),
          primary_url: i < 2 ? RUNNING_URL : fit(text, URL),
        },
        ...{ target: fit(text, TITLE), class: fit(text, WORD), file_paths: [fit(text, PATH)], kev: i === 0, epss: 0.9 },
        cvss: { [fit(text, WORD)]: { v3_score: 9, v3_vector: fit(text, ID) } },
      })),
    },
    sbom: {
      ...header,
      ...{ format: fit(text, WORD), spec_version: fit(text, WORD) },
      components: [
        {
          ...pack,
          licenses: [fit(text, TITLE)],
          src_name: name,
          file_paths: [fit(text, PATH)],
          class: fit(text, WORD),
        },
      ],
    },
    resource: {
      hash: name,
      spec: {
        ...{ defaultAction: fit(text, WORD), architectures: [fit(text, WORD)], workloadRef: { kind, name } },
        syscalls: [{ names: ['read'], action: 'SCMP_ACT_ALLOW' }],
      },
      distribution: { ready: 1, total: 2, state: fit(text, WORD) },
    },
    nodeFiles: { node_name: node, files: [{ path: fit(text, NAME), hash: fit(text, WORD) }] },
    decision: {
      ...{ scope: { type: 'workload', namespace: name, kind: fit(text, WORD), name }, decision: 'accepted' },
      ...{ by: fit(text, WORD), why: fit(text, TITLE) },
    },
    signature: {
      ...{ schema_version: 1, digest, checked_at: site.zonedAgo(60), verdict: 'verified' },
      // These fields do not allow control characters, but allow markup and any length.
      repository: fit(plain(text), REFERENCE),
      signatures: [
        {
          ...{ format: fit(plain(text), ID), verified: true, signer_kind: 'keyless', source: fit(plain(text), ID) },
          ...{ issuer: fit(plain(text), REFERENCE), san: fit(plain(text), REFERENCE), detail: plain(text) },
        },
      ],
      attestations: [
        {
          ...{ format: 'bundle', verified: true, signer_kind: 'keyless', issuer: 'https://a.example' },
          ...{ san: fit(plain(text), REFERENCE), predicate_type: fit(plain(text), REFERENCE) },
          provenance: {
            builder_id: fit(plain(text), REFERENCE),
            source_repo: RUNNING_URL,
            source_ref: fit(plain(text), ID),
          },
        },
      ],
    },
    digest,
  }
}

const plain = (text: string) =>
  text.replace(/[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu, '_')

export async function postHostile(site: Site): Promise<void> {
  for (const [n, [label, text]] of Object.entries(HOSTILE_TEXTS).entries()) {
    const records = recordsOf(site, label, text, n)
    await site.post('/pod/spec', records.pod)
    await site.post('/svc/spec', records.service)
    await site.post('/pod/traffic/batch', records.flows)
    await site.post('/pod/syscalls', [records.syscalls])
    await site.post('/node/facts', records.facts)
    await site.post('/seccomp/denials', records.drain)
    await site.post('/seccomp/node-status', records.nodeFiles)
    const { digest } = records
    // Names of resources follow the rules of Kubernetes.
    await site.send('PUT', `/seccomp/crs/hostile/profile-${n}`, records.resource)
    await site.post('/runtime/executables', records.files)
    await site.post('/runtime/coverage', [records.heartbeat])
    await site.post('/runtime/capabilities', [records.capability])
    await site.post('/pod/compute/batch', records.sample)
    for (const minute of records.minutes) await site.post('/pod/compute/history/batch', minute)
    await site.post(`/images/${digest}/vulnerabilities`, records.findings)
    await site.post(`/images/${digest}/sbom`, records.sbom)
    await site.post(`/images/${digest}/attestation`, records.signature)
    await site.send('PUT', `/vulnerabilities/${idOf(n, 1)}/decision`, records.decision)
  }
}

/** The workloads of the seed, with their node and their image. */
export const hostileWorkloads = () =>
  Object.keys(HOSTILE_TEXTS).map((label) => {
    const text = nameTextOf(label)
    const [namespace, kind, name] = [fit(text, NAME), fit(text, KIND), fit(text, NAME)]
    return { label, namespace, kind, name, node: fit(`node ${text}`, NAME), digest: digestOf(label) }
  })
