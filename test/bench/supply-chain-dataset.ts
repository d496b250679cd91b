/**
 * A cluster and what scanners found in its images, the same each time: images on a dozen base images, so that a few hundred
 * vulnerabilities are in nearly all of them and most in a handful; each image runs mostly in the namespace of its team.
 */
import { createHash } from 'node:crypto'

export interface Scale {
  images: number
  /** Rows for each image, of all sources together. */
  findings: number
  workloads: number
  namespaces: number
}

const BASES = 12
/** Of the images, every other has a report of the matcher too, with a third of the findings: together 7/6 of the scanner's. */
const SCANNER_SHARE = 6 / 7
const MATCHED_IMAGES = 2
const MATCHED_FINDINGS = 3
/** Distinct vulnerabilities for each finding of an image: 20 000 with 2 000. */
const CVES_PER_FINDING = 10
/** One vulnerability in a hundred of an image's is in two fifths of all images. */
const BAND_IMAGES = 5
const BAND_HAVE = 2
export const PODS_PER_WORKLOAD = 2

const startedMs = Date.now()
/** RFC 3339, so many seconds from when the program began. */
export const at = (secs: number) => new Date(startedMs + secs * 1_000).toISOString()

/** Numbers from 0 to below 1 that depend on the seed alone. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

const hex = (text: string) => createHash('sha256').update(text).digest('hex')
export const imageDigest = (image: number) => `sha256:${hex(`image ${image}`)}`
const repositoryOf = (image: number) => `shop/team-${image % 60}/service-${image}`
const tagOf = (image: number) => `v1.${image % 20}.${image % 7}`
export const namespaceName = (n: number) => `team-${n}`

const SEVERITIES = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN']
const severityOf = (cve: number) => {
  const share = random(cve * 31 + 1)()
  return SEVERITIES[[0.02, 0.16, 0.52, 0.9, 0.91, 1].findIndex((limit) => share < limit)]!
}
export const cveId = (cve: number) => `CVE-${2017 + (cve % 9)}-${10_000 + cve}`
/** A vulnerability is found in one package, or in the two or three that are built from one source. */
const packageCount = (cve: number) => (cve % 17 === 0 ? 3 : cve % 5 < 2 ? 2 : 1)
const WORDS = [
  'buffer',
  'overflow',
  'parser',
  'crafted',
  'denial',
  'remote',
  'heap',
  'header',
  'certificate',
  'recursion',
  'archive',
  'signature',
]

const packageOf = (cve: number, k: number, isOfBase: boolean, image: number) => {
  const n = (cve * 7 + k) % 600
  const [type, prefix] = isOfBase
    ? ['deb', 'lib']
    : (
        [
          ['npm', ''],
          ['golang', 'github.com/acme/'],
          ['maven', 'org.acme:'],
        ] as const
      )[cve % 3]!
  const name = `${prefix}${WORDS[n % 12]}-${WORDS[(n * 5) % 12]}${n}`
  const version = isOfBase
    ? `${1 + (n % 4)}.${image % BASES}.${n % 13}-r${n % 5}`
    : `${1 + (n % 9)}.${cve % 20}.${(cve + image) % 4}`
  return { name, version, type, purl: `pkg:${type}/${name}@${version}` }
}

/** What the scanner says of one vulnerability in one package. */
function finding(cve: number, k: number, isOfBase: boolean, image: number) {
  const found = packageOf(cve, k, isOfBase, image)
  const score = 1 + (cve % 90) / 10
  const vector = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H'
  const providers = ['nvd', 'redhat', 'ghsa'].slice(0, 1 + (cve % 3))
  return {
    id: cveId(cve),
    package: found,
    ...(cve % 3 === 2 ? {} : { fixed_version: `${found.version}.${1 + (cve % 9)}` }),
    severity: severityOf(cve),
    score,
    cvss: Object.fromEntries(
      providers.map((provider, p) => [provider, { v3_score: Math.min(10, score + p / 10), v3_vector: vector }]),
    ),
    title: `${found.name}: ${WORDS[cve % 12]} ${WORDS[(cve * 3) % 12]} allows a ${WORDS[(cve * 5) % 12]} of the service through a crafted input`,
    primary_url: `https://avd.example.test/nvd/${cveId(cve).toLowerCase()}`,
    target: isOfBase ? `registry.example.test/${repositoryOf(image)} (debian 12.5)` : 'srv/app',
    class: isOfBase ? 'os-pkgs' : 'lang-pkgs',
    published_at: new Date(Date.UTC(2017 + (cve % 9), cve % 12, 1 + (cve % 28))).toISOString(),
    last_modified_at: new Date(Date.UTC(2018 + (cve % 8), cve % 12, 1 + (cve % 28))).toISOString(),
    ...(isOfBase ? {} : { file_paths: [`srv/app/node_modules/${found.name}/package.json`] }),
  }
}
export type Finding = ReturnType<typeof finding>

export class Dataset {
  readonly scale: Scale
  readonly cves: number
  readonly #wanted: number
  readonly #core: number
  readonly #band: number
  readonly #base: number

  constructor(scale: Scale) {
    this.scale = scale
    this.cves = scale.findings * CVES_PER_FINDING
    this.#wanted = Math.round(scale.findings * SCANNER_SHARE)
    this.#core = Math.ceil(this.#wanted * 0.1)
    this.#band = Math.ceil(this.#wanted * 0.07)
    this.#base = Math.ceil(this.#wanted * 0.3)
  }

  /** Vulnerabilities that are in two fifths of all images: 200 of 500. */
  band(n: number): string {
    return cveId(this.#core + (n % this.#band))
  }

  /** What the scanner finds in an image, ordered as it sends it. `scan` numbers its scans: each differs in a hundredth from the one before. */
  findings(image: number, scan = 0): Finding[] {
    const found: Finding[] = []
    const seen = new Set<number>()
    const add = (cve: number, isOfBase: boolean) => {
      if (seen.has(cve)) return
      seen.add(cve)
      for (let k = 0; k < packageCount(cve) && found.length < this.#wanted; k++)
        found.push(finding(cve, k, isOfBase, image))
    }
    for (let n = 0; n < this.#core; n++) if ((image * 7 + n) % 20 !== 0) add(n, true)
    for (let n = 0; n < this.#band; n++) if ((image + n) % BAND_IMAGES < BAND_HAVE) add(this.#core + n, true)
    const base = this.#core + this.#band
    for (let n = 0; n < this.#base; n++) add(base + (image % BASES) * this.#base + n, true)
    const app = base + BASES * this.#base
    const next = random(image + 1)
    const news = random(image * 1_000 + scan)
    while (found.length < this.#wanted) {
      const share = scan > 0 && found.length > this.#wanted * 0.99 - 2 ? news() : next()
      add(app + Math.floor(share ** 1.5 * Math.max(1, this.cves - app)), false)
    }
    return found.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.package.name < b.package.name ? -1 : 1))
  }

  /** The bodies of an image: of the scanner, and of the matcher for every other one. */
  payloads(image: number, scan: { number: number; at: string }): { body: string; rows: number }[] {
    const found = this.findings(image, scan.number)
    const header = {
      schema_version: 1,
      image: {
        digest: imageDigest(image),
        ref: `registry.example.test/${repositoryOf(image)}:${tagOf(image)}`,
        registry: 'registry.example.test',
        repository: repositoryOf(image),
        tag: tagOf(image),
        digest_kind: 'manifest',
      },
      os: { family: 'debian', name: '12.5' },
      observed_in: this.workloadsOf(image).map((w) => ({
        namespace: this.namespaceOf(w),
        kind: 'Deployment',
        name: workloadName(w),
        container: 'app',
      })),
      scanned_at: scan.at,
    }
    const scanner = { name: 'Scanner', vendor: 'Example', version: '0.58.1' }
    const reports = [
      {
        body: JSON.stringify({ ...header, source: 'operator-scanner', scanner, vulnerabilities: found }),
        rows: found.length,
      },
    ]
    if (image % MATCHED_IMAGES === 0) {
      const matched = found
        .filter((_, i) => i % MATCHED_FINDINGS === 0)
        .map((one) => {
          const share = random(Number(one.id.slice(9)))()
          const kev = share < 0.005 ? { kev: true, kev_date_added: '2024-03-04T00:00:00Z' } : {}
          return {
            ...one,
            ...kev,
            epss: Math.round(share ** 6 * 1e5) / 1e5,
            epss_percentile: Math.round(share * 1e5) / 1e5,
          }
        })
      const extra = { sbom_sources: ['operator-scanner'], sbom_trust: 'scanned', db_updated_at: at(-86_400) }
      reports.push({
        body: JSON.stringify({ ...header, source: 'db-matcher', ...extra, vulnerabilities: matched }),
        rows: matched.length,
      })
    }
    return reports
  }

  sbom(image: number, components: number): string {
    const list = Array.from({ length: components }, (_, i) => {
      const found = packageOf(i, i, i % 3 === 0, image)
      const name = `${found.name}-${i}`
      return {
        ...found,
        name,
        purl: `pkg:${found.type}/${name}@${found.version}`,
        class: i % 3 === 0 ? 'os-pkgs' : 'lang-pkgs',
        licenses: [['MIT', 'Apache-2.0', 'GPL-2.0-or-later'][i % 3]],
        layer_digest: `sha256:${hex(`layer ${i % 12}`)}`,
        file_paths: [`srv/app/vendor/${name}`],
      }
    })
    const sentImage = { digest: imageDigest(image), repository: repositoryOf(image), tag: tagOf(image) }
    return JSON.stringify({
      schema_version: 1,
      image: sentImage,
      source: 'operator-scanner',
      scanned_at: at(-60),
      format: 'CycloneDX',
      spec_version: '1.6',
      components: list,
    })
  }

  workloadsOf(image: number): number[] {
    return Array.from(
      { length: Math.ceil((this.scale.workloads - image) / this.scale.images) },
      (_, n) => image + n * this.scale.images,
    )
  }

  /** Three of four copies of an image run where its team is, the fourth elsewhere. */
  namespaceOf(workload: number): string {
    const copy = Math.floor(workload / this.scale.images)
    const team = workload % this.scale.images
    return namespaceName((copy % 4 === 3 ? team * 7 + 1 : team) % this.scale.namespaces)
  }

  /** Pod `n` of a workload as its node agent posts it, `image` what it runs. */
  pod(workload: number, n: number, image = workload % this.scale.images): string {
    const index = workload * PODS_PER_WORKLOAD + n
    const name = podName(workload, n)
    const ip = podAddress(index)
    return JSON.stringify({
      pod_name: name,
      pod_ip: ip,
      pod_ips: [ip],
      pod_namespace: this.namespaceOf(workload),
      pod_obj: { metadata: { name, namespace: this.namespaceOf(workload), uid: hex(name).slice(0, 32) } },
      time_stamp: at(0).slice(0, -1),
      node_name: `node-${index % 50}`,
      is_dead: false,
      started_at: at(-86_400).slice(0, -1),
      workload_kind: 'Deployment',
      workload_name: workloadName(workload),
      containers: [
        {
          name: 'app',
          kind: 'regular',
          image: `registry.example.test/${repositoryOf(image)}:${tagOf(image)}`,
          digest: imageDigest(image),
          digest_kind: 'repo',
          repository: `registry.example.test/${repositoryOf(image)}`,
          tag: tagOf(image),
          state: 'running',
        },
      ],
    })
  }

  /** A batch of flows into a pod, most of them from its own namespace, some from another and from outside. */
  flows(workload: number, count: number): string {
    const index = workload * PODS_PER_WORKLOAD
    return JSON.stringify(
      Array.from({ length: count }, (_, n) => ({
        uuid: hex(`flow ${workload} ${n}`).slice(0, 36),
        pod_name: podName(workload, 0),
        pod_namespace: this.namespaceOf(workload),
        pod_ip: podAddress(index),
        pod_port: String(8_000 + n),
        ip_protocol: 'TCP',
        traffic_type: n % 4 === 3 ? 'EGRESS' : 'INGRESS',
        traffic_in_out_ip:
          n % 10 === 9
            ? `93.184.216.${1 + (index % 200)}`
            : podAddress((index + n * this.scale.images) % (this.scale.workloads * PODS_PER_WORKLOAD)),
        traffic_in_out_port: '0',
        decision: 'ALLOW',
        time_stamp: at(-60 - n).slice(0, -1),
      })),
    )
  }
}

const workloadName = (workload: number) => `service-${workload}`
const podName = (workload: number, n: number) => `${workloadName(workload)}-7c9f6d5b8-${String(n).padStart(5, 'x')}`
const podAddress = (i: number) => `10.${40 + Math.floor(i / 62_500)}.${Math.floor(i / 250) % 250}.${(i % 250) + 1}`
