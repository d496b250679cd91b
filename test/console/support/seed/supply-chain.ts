/** Reports, SBOMs, signatures and executed files for the images of the seeded cluster. */
import { type Image, pick, type Workload } from './cluster.ts'
import { ADVISORIES, DEBIAN, type Package, purlOf, STACKS } from './packages.ts'
import type { Site } from './site.ts'

const DAY_SECS = 86_400
/** Vulnerabilities with at least this EPSS are fixed in most images: only one in `RARE` still has them. */
const RARE_FROM_EPSS = 0.1
const RARE = 24
/** Three images in five were rebuilt recently, and have only vulnerabilities without a fix. */
const PATCHED_IN_FIVE = 3
const GITHUB = 'https://token.actions.githubusercontent.com'

const isOs = ({ type }: Package) => type === 'debian'
/** Third-party programs are written in Go. */
const stackOf = ({ repository }: Image) =>
  repository.includes('/library/') ? STACKS.at(-1)! : STACKS[pick(repository, STACKS.length)]!
export const packagesOf = (image: Image): readonly Package[] => [...DEBIAN, ...stackOf(image).packages]

const imageHeader = ({ digest, repository, tag }: Image) => ({
  ...{ digest, ref: `${repository}:${tag}`, registry: repository.split('/')[0] },
  ...{ repository: repository.slice(repository.indexOf('/') + 1), tag },
})

const scanner = { name: 'Trivy', vendor: 'Aqua Security', version: '0.62.1' }

export async function postReport(
  site: Site,
  image: Image,
  packages: readonly Package[],
  extra: readonly object[] = [],
): Promise<void> {
  const isPatched = pick(`${image.repository}/patched`, 5) < PATCHED_IN_FIVE
  const findings = ADVISORIES.flatMap(({ id, package: of, severity, score, fixed, epss, kev, title }) => {
    const found = packages.find(({ name }) => name === of)
    const isRare = epss >= RARE_FROM_EPSS && pick(`${image.repository}/${id}`, RARE) > 0
    const isFixed = isPatched && (fixed !== null || severity !== 'LOW')
    if (!found || isRare || isFixed) return []
    return {
      ...{ id, severity, score, title, epss, epss_percentile: Math.min(0.999, 0.4 + epss * 0.6) },
      package: { name: found.name, version: found.version, type: found.type, purl: purlOf(found) },
      ...{ fixed_version: fixed, status: fixed === null ? 'affected' : 'fixed' },
      ...{
        primary_url: `https://avd.aquasec.com/nvd/${id.toLowerCase()}`,
        class: isOs(found) ? 'os-pkgs' : 'lang-pkgs',
      },
      ...{ target: isOs(found) ? 'debian 12.4' : found.type, file_paths: found.files },
      ...(kev ? { kev: true, kev_date_added: `${kev}T00:00:00Z` } : { kev: false }),
      cvss: { nvd: { v3_score: score, v3_vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H' } },
    }
  })
  await site.post(`/images/${image.digest}/vulnerabilities`, {
    ...{ schema_version: 1, source: 'operator-scanner', scanned_at: site.zonedAgo(DAY_SECS / 4), scanner },
    ...{ image: imageHeader(image), os: { family: 'debian', name: '12.4' } },
    vulnerabilities: [...findings, ...extra],
  })
}

export async function postSbom(site: Site, image: Image, packages: readonly Package[]) {
  await site.post(`/images/${image.digest}/sbom`, {
    ...{ schema_version: 1, source: 'operator-scanner', scanned_at: site.zonedAgo(DAY_SECS / 4), scanner },
    ...{ image: imageHeader(image), format: 'CycloneDX', spec_version: '1.6' },
    components: packages.map((one) => ({
      ...{ name: one.name, version: one.version, purl: purlOf(one), type: one.type, licenses: [one.license] },
      ...{ class: isOs(one) ? 'os-pkgs' : 'lang-pkgs', file_paths: one.files },
    })),
  })
}

/** The result of a check of an image that the workflow of its team signed, with provenance. */
export function signedResult(site: Site, { digest, repository }: Image): object {
  const team = repository.split('/').slice(1).join('/')
  const signer = {
    ...{ verified: true, signer_kind: 'keyless', issuer: GITHUB, source: 'referrers' },
    san: `https://github.com/acme/${team}/.github/workflows/release.yml@refs/heads/main`,
  }
  return {
    ...{ schema_version: 1, digest, repository, checked_at: site.zonedAgo(3_600), verdict: 'verified' },
    signatures: [{ ...signer, format: 'cosign-bundle' }],
    attestations: [
      {
        ...{ ...signer, format: 'bundle', predicate_type: 'https://slsa.dev/provenance/v1' },
        payload_sha256: digest.slice('sha256:'.length),
        provenance: {
          ...{ builder_id: 'https://github.com/actions/runner/github-hosted', source_ref: 'refs/heads/main' },
          ...{ source_repo: `https://github.com/acme/${team}`, source_commit: digest.slice(7, 47) },
        },
      },
    ],
  }
}

/** A result that found no signature, or of a check that failed. */
export const unsignedResult = (site: Site, { digest, repository }: Image, more: object = {}): object => ({
  ...{ schema_version: 1, digest, repository, checked_at: site.zonedAgo(3_600), verdict: 'unsigned' },
  ...{ signatures: [], attestations: [], ...more },
})

/** Reports, SBOMs and signature checks of the workloads' images. A few images have none. */
export async function postImages(site: Site, workloads: readonly Workload[]): Promise<void> {
  const images = [...new Map(workloads.map(({ image }) => [image.digest, image])).values()]
  let next = 0
  const work = async () => {
    while (next < images.length) {
      const image = images[next++]!
      const n = pick(image.repository, 25)
      const packages = packagesOf(image)
      if (n !== 1) await postReport(site, image, packages)
      if (n > 2) await postSbom(site, image, packages)
      if (n === 3) continue
      const result =
        n === 4
          ? unsignedResult(site, image)
          : n === 5
            ? unsignedResult(site, image, { verdict: 'unknown', reason: 'registry_unreachable' })
            : signedResult(site, image)
      await site.post(`/images/${image.digest}/attestation`, result)
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
}

const HOUR_SECS = 3_600

/** The identity of a container in reports of agents. */
export const runtimeKey = ({ namespace, kind, name, container, image }: Workload, pod = '') => ({
  ...{ pod_namespace: namespace, workload_kind: kind, workload_name: name, container_name: container },
  ...{ image_digest: image.digest, ...(pod && { pod_name: pod }) },
})

/** Executed files: the program of the stack and libraries of some packages, with the paths that the kernel saw. */
export function ranFiles(site: Site, workload: Workload): object[] {
  const { exec, packages } = stackOf(workload.image)
  const of = runtimeKey(workload, workload.pods[0]!.name)
  const times = { first_seen: site.ago(20 * 24 * HOUR_SECS), last_seen: site.ago(HOUR_SECS / 2) }
  const file = (path: string, kind: string, more: object = {}) => ({
    ...{ ...of, kind, path, path_complete: true, source: 'ebpf', origin: 'image', ...times, ...more },
  })
  const used = [...DEBIAN.slice(0, 4), ...packages].filter(({ name }) => pick(`${workload.thing}/${name}`, 3) > 0)
  const libraries = used.flatMap(({ files }) => files.filter((path) => /\.(so[.\d]*|jar)$|libc/.test(path)))
  return [
    file(exec, 'exec'),
    file('/usr/bin/dash', 'exec', { last_seen: site.ago(6 * HOUR_SECS) }),
    ...libraries.map((path) => file(`/${path}`, 'lib')),
  ]
}

export function heartbeat(site: Site, workload: Workload, i: number, more: object = {}): object {
  const pod = workload.pods[i]!
  return {
    ...runtimeKey(workload, pod.name),
    ...{ container_id: pod.uid.replaceAll('-', ''), node_name: pod.node, mode: 'full' },
    ...{ exec_probe: true, lib_probe: true, cap_probe: true, cap_hook: 'cap_capable', start_mode: 'start' },
    ...{ tracking_since: site.ago(20 * 24 * HOUR_SECS), heartbeat_at: site.ago(1), heartbeat_secs: 86_400 },
    ...more,
  }
}
