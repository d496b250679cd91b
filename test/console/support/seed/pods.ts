/** Posts of pods and services as agents send them. */
import { imageOf, type Pod, pick, type Workload } from './cluster.ts'
import type { Site } from './site.ts'

const DAY_SECS = 86_400
/** Pods are at most this old. */
const OLDEST_DAYS = 26
const BEFORE_STATISTICS = 300

export interface PodMore {
  readonly labels?: Readonly<Record<string, string>>
  readonly containers?: readonly object[]
  readonly silentSecs?: number
  readonly more?: object
}

const startedSecs = (pod: Pod) => DAY_SECS * (3 + pick(pod.name, OLDEST_DAYS - 3)) + pick(pod.uid, DAY_SECS)

export const labelsOf = ({ name, thing, namespace, image }: Workload) => ({
  ...{ 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': thing, 'app.kubernetes.io/version': image.tag },
  team: namespace,
})

export const containerOf = ({ container, image }: Pick<Workload, 'container' | 'image'>, more: object = {}) => ({
  ...{ name: container, kind: 'regular', image: `${image.repository}:${image.tag}`, digest: image.digest },
  ...{ digest_kind: 'repo', repository: image.repository, tag: image.tag, state: 'running' },
  security_context: {
    ...{ runAsNonRoot: true, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
    ...{ capabilitiesDrop: ['ALL'], seccompProfileType: 'RuntimeDefault' },
  },
  ...more,
})

/** The body of POST /pod/spec for a pod of a workload. */
export function podPost(site: Site, workload: Workload, pod: Pod, given: PodMore = {}): object {
  const { namespace, kind, name, role, level } = workload
  const { labels = labelsOf(workload), containers = [containerOf(workload)], silentSecs = 0, more } = given
  const ports = role.port === null ? [] : [{ name: 'main', containerPort: Number(role.port) }]
  const selector = { 'app.kubernetes.io/name': name }
  return {
    ...{ pod_name: pod.name, pod_namespace: namespace, pod_ip: pod.ip, node_name: pod.node, is_dead: false },
    ...{ time_stamp: site.ago(silentSecs), started_at: site.ago(silentSecs + startedSecs(pod)) },
    ...{ workload_kind: kind, workload_name: name, workload_selector_labels: selector, capture_level: level },
    ...{ pod_identity: name, host_network: false, containers },
    pod_security: {
      ...{ serviceAccountName: name, automountServiceAccountToken: false },
      ...{ hostNetwork: false, hostPID: false, hostIPC: false },
      securityContext: { runAsNonRoot: true, seccompProfileType: 'RuntimeDefault' },
    },
    pod_obj: {
      metadata: {
        ...{ name: pod.name, namespace, uid: pod.uid, labels },
        ownerReferences: [{ kind: kind === 'Deployment' ? 'ReplicaSet' : kind, name, controller: true }],
      },
      spec: { hostNetwork: false, containers: [{ name: containers.length > 0 ? workload.container : 'main', ports }] },
    },
    ...more,
  }
}

const SERVICES = 250

/** The address of the nth service. */
export const serviceAddress = (n: number) => `10.96.${1 + Math.floor(n / SERVICES)}.${2 + (n % SERVICES)}`

export const servicePost = (site: Site, { namespace, name, role }: Workload, ip: string) => ({
  ...{ svc_namespace: namespace, svc_name: name, svc_ip: ip, time_stamp: site.ago(0) },
  service_spec: {
    metadata: { name, namespace, uid: `${ip}-uid` },
    spec: {
      selector: { 'app.kubernetes.io/name': name },
      ports: [{ name: 'main', port: Number(role.port), targetPort: 'main' }],
    },
  },
})

/** The sidecar of every third web workload. */
const SIDECAR = { container: 'envoy', image: imageOf('library/envoy', '1.30.2') }
export const containersOf = (workload: Workload) =>
  workload.role.name === 'web' && pick(workload.name, 3) === 0
    ? [containerOf(workload), containerOf(SIDECAR)]
    : [containerOf(workload)]

/**
 * Posts the pods and services of workloads. `silent` has the nodes that have not reported for a while, with the
 * seconds.
 */
export async function postPods(
  site: Site,
  workloads: readonly Workload[],
  silent: ReadonlyMap<string, number> = new Map(),
): Promise<void> {
  const posts = workloads.flatMap((workload) =>
    workload.pods.map((pod) => {
      const silentSecs = silent.get(pod.node) ?? 0
      return podPost(site, workload, pod, { containers: containersOf(workload), silentSecs })
    }),
  )
  await site.postAll('/pod/spec', posts.slice(0, BEFORE_STATISTICS))
  // Updates the statistics, so that the planner knows the number of rows.
  await site.sql`analyze`
  await site.postAll('/pod/spec', posts.slice(BEFORE_STATISTICS))
  const served = workloads.filter(({ role }) => role.port !== null)
  await site.postAll(
    '/svc/spec',
    served.map((workload, n) => servicePost(site, workload, serviceAddress(n))),
  )
}
