/**
 * The story of the seeded cluster: a shop with its payments, platform and monitoring, with one case of everything that
 * needs attention. Tests refer to these names.
 */
import { type Image, imageOf, nodeName, type Placement, podName, type Workload } from './cluster.ts'
import type { Role } from './names.ts'
import type { Package } from './packages.ts'

const deployment = (pods: number, port: string | null): Role => ({ name: 'story', kind: 'Deployment', pods, port })

interface Cast {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly image: Image
  readonly pods: number
  readonly port: string | null
  readonly level?: string
  /** The nodes of its pods; in turn by default. */
  readonly nodes?: readonly number[]
}

/** Nodes that are silent, with the seconds since their last report. */
export const SILENT_NODES: ReadonlyMap<string, number> = new Map([
  [nodeName(17), 3 * 3_600],
  [nodeName(31), 26 * 3_600],
])

export const IMAGES = {
  checkout: imageOf('shop/checkout', 'v3.14.2'),
  /** The image of checkout until five days ago. */
  earlierCheckout: imageOf('shop/checkout', 'v3.14.1'),
  storefront: imageOf('shop/storefront', 'v8.2.0'),
  recommender: imageOf('shop/recommender', 'v0.9.4'),
  postgres: imageOf('library/postgres', '16.4'),
  ledger: imageOf('payments/ledger', 'v5.1.0'),
  fxRates: imageOf('payments/fx-rates', 'v1.0.7'),
  /** An image without a signature. */
  cardVault: imageOf('payments/card-vault', 'v2.0.0-hotfix1'),
  nodeAgent: imageOf('platform/node-agent', 'v1.22.0'),
  imageBuilder: imageOf('platform/image-builder', 'v4.4.1'),
  ingress: imageOf('library/ingress-nginx', 'v1.11.1'),
  prometheus: imageOf('library/prometheus', 'v2.53.1'),
  grafana: imageOf('library/grafana', '11.1.0'),
  coredns: imageOf('library/coredns', 'v1.11.3'),
} as const

const CAST = {
  checkout: {
    namespace: 'shop',
    kind: 'Deployment',
    name: 'checkout',
    image: IMAGES.checkout,
    pods: 4,
    port: '8080',
    nodes: [1, 2, 3, 4],
  },
  storefront: {
    namespace: 'shop',
    kind: 'Deployment',
    name: 'storefront',
    image: IMAGES.storefront,
    pods: 3,
    port: '3000',
    nodes: [1, 2, 3],
  },
  recommender: {
    namespace: 'shop',
    kind: 'Deployment',
    name: 'recommender',
    image: IMAGES.recommender,
    pods: 2,
    port: '8090',
    nodes: [2, 3],
  },
  ordersDb: {
    namespace: 'shop',
    kind: 'StatefulSet',
    name: 'orders-db',
    image: IMAGES.postgres,
    pods: 3,
    port: '5432',
  },
  ledger: {
    namespace: 'payments',
    kind: 'Deployment',
    name: 'ledger',
    image: IMAGES.ledger,
    pods: 3,
    port: '8080',
    nodes: [1, 2, 4],
  },
  ledgerDb: {
    namespace: 'payments',
    kind: 'StatefulSet',
    name: 'ledger-db',
    image: IMAGES.postgres,
    pods: 2,
    port: '5432',
  },
  cardVault: {
    namespace: 'payments',
    kind: 'Deployment',
    name: 'card-vault',
    image: IMAGES.cardVault,
    pods: 2,
    port: '8443',
  },
  fxRates: {
    namespace: 'payments',
    kind: 'Deployment',
    name: 'fx-rates',
    image: IMAGES.fxRates,
    pods: 1,
    port: '8080',
    level: 'low',
  },
  nodeAgent: {
    namespace: 'platform',
    kind: 'DaemonSet',
    name: 'node-agent',
    image: IMAGES.nodeAgent,
    pods: 50,
    port: '9100',
  },
  imageBuilder: {
    namespace: 'platform',
    kind: 'Deployment',
    name: 'image-builder',
    image: IMAGES.imageBuilder,
    pods: 2,
    port: null,
    nodes: [1, 5],
  },
  ingress: {
    namespace: 'ingress',
    kind: 'Deployment',
    name: 'ingress-nginx',
    image: IMAGES.ingress,
    pods: 3,
    port: '8443',
  },
  prometheus: {
    namespace: 'monitoring',
    kind: 'StatefulSet',
    name: 'prometheus',
    image: IMAGES.prometheus,
    pods: 2,
    port: '9090',
  },
  grafana: {
    namespace: 'monitoring',
    kind: 'Deployment',
    name: 'grafana',
    image: IMAGES.grafana,
    pods: 1,
    port: '3000',
  },
  coredns: {
    namespace: 'kube-system',
    kind: 'Deployment',
    name: 'coredns',
    image: IMAGES.coredns,
    pods: 2,
    port: '53',
  },
} as const satisfies Record<string, Cast>

export type StoryName = keyof typeof CAST
export type Story = Readonly<Record<StoryName, Workload>>

/** The workloads of the story, placed on the nodes of the cluster. */
export function makeStory(placement: Placement, nodes: number): Story {
  const made = Object.entries(CAST).map(([key, cast]): [string, Workload] => {
    const { namespace, kind, name, image, pods, port, level = 'full', nodes: places }: Cast = cast
    return [
      key,
      {
        ...{ namespace, kind, name, thing: name, container: name, image, level },
        role: { ...deployment(pods, port), kind: kind as Role['kind'] },
        pods: Array.from({ length: kind === 'DaemonSet' ? nodes : pods }, (_, i) => {
          const place = places?.[i % places.length] ?? (kind === 'DaemonSet' ? i : undefined)
          return placement.pod(podName(kind, name, i), place === undefined ? undefined : place % nodes)
        }),
      },
    ]
  })
  return Object.fromEntries(made) as unknown as Story
}

/**
 * A package of checkout in addition to its stack: a loaded library with a vulnerability that is known to be exploited.
 */
export const LOG4J: Package = {
  ...{ name: 'org.apache.logging.log4j:log4j-core', version: '2.14.1', type: 'maven', license: 'Apache-2.0' },
  files: ['app/lib/log4j-core-2.14.1.jar'],
}
/** A package of card-vault. */
export const XZ: Package = {
  ...{ name: 'xz-utils', version: '5.6.0-0.2', type: 'debian', license: '0BSD' },
  files: ['usr/bin/xz', 'usr/lib/x86_64-linux-gnu/liblzma.so.5.6.0'],
}

export const LOG4SHELL = {
  ...{ id: 'CVE-2021-44228', aliases: ['GHSA-jfh8-c2jp-5v3q'], severity: 'CRITICAL', score: 10 },
  ...{ title: 'log4j-core: remote code execution in Log4j 2.x when logs contain an attacker-controlled string value' },
  package: {
    ...{ name: LOG4J.name, version: LOG4J.version, type: 'maven' },
    purl: 'pkg:maven/org.apache.logging.log4j/log4j-core@2.14.1',
  },
  ...{ fixed_version: '2.15.0, 2.12.2, 2.3.1', status: 'fixed', class: 'lang-pkgs', target: 'Java' },
  ...{ primary_url: 'https://avd.aquasec.com/nvd/cve-2021-44228', file_paths: LOG4J.files },
  ...{ kev: true, kev_date_added: '2021-12-10T00:00:00Z', epss: 0.944, epss_percentile: 0.999 },
  ...{ published_at: '2021-12-10T10:15:09Z', last_modified_at: '2025-02-04T15:15:13Z' },
  cvss: { nvd: { v3_score: 10, v3_vector: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H' } },
}

export const XZ_BACKDOOR = {
  ...{ id: 'CVE-2024-3094', severity: 'CRITICAL', score: 10, title: 'xz: malicious code in distributed source' },
  package: { name: XZ.name, version: XZ.version, type: 'debian', purl: 'pkg:deb/debian/xz-utils@5.6.0-0.2' },
  ...{ fixed_version: '5.6.1+really5.4.5-1', status: 'fixed', class: 'os-pkgs', target: 'debian 13' },
  ...{ primary_url: 'https://avd.aquasec.com/nvd/cve-2024-3094', kev: false, epss: 0.85, epss_percentile: 0.99 },
}

/** Addresses of the story. */
export const ADDRESSES = {
  /** A visitor of the shop, on the internet. */
  visitor: '81.2.69.142',
  /** An external address to which recommender began to send data. */
  newOutside: '185.220.101.34',
  /** An internal address that no agent posted. */
  unresolved: '172.31.7.44',
  cardNetwork: '52.58.78.16',
} as const
