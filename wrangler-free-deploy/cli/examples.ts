/** Calls for the manual (docs/cli.md), by command. They are not in the program, which is to stay small. */

export interface Example {
  /** After `ctb`. */
  readonly words: string
  /** Its purpose; if its exit code is not 0, `exit code N`. */
  readonly what: string
}

export const EXAMPLES: Readonly<Record<string, readonly Example[]>> = {
  changes: [
    {
      words: 'changes -n shop',
      what: 'The last seven days.',
    },
    {
      words: 'changes -n shop --last 24h',
      what: 'Since yesterday.',
    },
  ],
  completion: [
    {
      words: 'completion bash',
      what: 'In ~/.bashrc: source <(ctb completion bash).',
    },
  ],
  components: [
    {
      words: 'components --name log4j-core --running true',
      what: 'Where a package runs, in any version.',
    },
    {
      words: 'components --purl pkg:npm/lodash@4.17.20',
      what: 'One version of a package.',
    },
  ],
  contention: [
    {
      words: 'contention -n shop',
      what: 'Who waits in a namespace.',
    },
    {
      words: 'contention --node node-1 --minutes 120',
      what: 'On a node, for two hours.',
    },
  ],
  coverage: [
    {
      words: 'coverage',
      what: 'What is missing in the cluster.',
    },
    {
      words: 'coverage -n shop --part containers',
      what: 'All containers of a namespace that are not known whole.',
    },
  ],
  decisions: [
    {
      words: 'decisions CVE-2026-0001',
      what: 'Who decided what, and why.',
    },
  ],
  diff: [
    {
      words: 'diff sha256:0123456789ab sha256:ba9876543210',
      what: 'Two images; exit code 1, since they differ.',
    },
    {
      words: 'diff shop/Deployment/web --from 24h',
      what: 'A workload since yesterday; exit code 1, since it changed.',
    },
  ],
  edges: [
    {
      words: 'edges -n shop --last 7d',
      what: 'Edges of a namespace with a new flow in the last week.',
    },
    {
      words: 'edges --verdict DROP --order flows',
      what: 'Connections that nobody answered, the most frequent first.',
    },
    {
      words: 'edges --group namespace --peer external --cidr 24',
      what: 'Namespaces and the networks that they reach.',
    },
  ],
  exposure: [
    {
      words: 'exposure CVE-2026-0001',
      what: 'The workloads that have it.',
    },
    {
      words: 'exposure CVE-2026-0001 --window-hours 24',
      what: 'By the flows of a day.',
    },
  ],
  findings: [
    {
      words: 'findings -n shop',
      what: 'What a namespace suffers from.',
    },
  ],
  flows: [
    {
      words: 'flows -n shop --last 15m',
      what: 'Flows of a namespace, of the last quarter of an hour.',
    },
    {
      words: 'flows --verdict DROP -o wide',
      what: 'Flows that nobody answered, with the cause.',
    },
    {
      words: 'flows --last 30d -o csv --out flows.csv',
      what: 'All flows of a month as a file.',
    },
    {
      words: 'flows -f -n shop --verdict DROP',
      what: 'Flows that nobody answers, as they come.',
    },
    {
      words: 'flows -f -o ndjson --last 1h --resume-file place',
      what: 'Each flow once, over restarts of both sides.',
    },
  ],
  get: [
    {
      words: 'get /version',
      what: 'What the broker is, as it says it.',
    },
  ],
  images: [
    {
      words: 'images -n shop',
      what: 'The images of a namespace.',
    },
    {
      words: 'images -o name',
      what: 'Their digests, as other commands take them.',
    },
  ],
  nodes: [
    {
      words: 'nodes -o wide',
      what: 'The nodes, with their pressure.',
    },
  ],
  'policy generate': [
    {
      words: 'policy generate -n shop --out shop.yaml',
      what: 'The policies of a namespace, as a file.',
    },
    {
      words: 'policy generate shop/Deployment/api --format cilium',
      what: 'The policy of a workload, for Cilium.',
    },
  ],
  'policy try': [
    {
      words: 'policy try -f shop.yaml --since 30d',
      what: 'A step of a pipeline before policies are applied; exit code 1, as here, stops it.',
    },
    {
      words: 'policy try -f shop.yaml -o json',
      what: 'The answer itself, for a program; exit code 1 here, too.',
    },
  ],
  runtime: [
    {
      words: 'runtime shop/Deployment/web',
      what: 'What ran in a workload.',
    },
    {
      words: 'runtime shop/Deployment/web --origin unshipped',
      what: 'Only files that no image shipped.',
    },
  ],
  sbom: [
    {
      words: 'sbom sha256:0123456789ab',
      what: 'The components of an image.',
    },
    {
      words: 'sbom sha256:0123456789ab --cyclonedx --out bom.json',
      what: 'The document, for other tools.',
    },
  ],
  search: [
    {
      words: 'search log4j',
      what: 'Packages and whatever else has that name.',
    },
    {
      words: 'search 10.1.0.2',
      what: 'The pod or the peer with an address.',
    },
  ],
  'seccomp denials': [
    {
      words: 'seccomp denials -n shop --last 1d',
      what: 'What was denied in a namespace within a day.',
    },
  ],
  'seccomp export': [
    {
      words: 'seccomp export shop/Deployment/api',
      what: 'The profile of a workload, as a resource for the operator.',
    },
  ],
  'seccomp profiles': [
    {
      words: 'seccomp profiles -n shop',
      what: 'The observed sets of a namespace.',
    },
  ],
  signatures: [
    {
      words: 'signatures -n shop',
      what: 'The containers of a namespace.',
    },
  ],
  sizing: [
    {
      words: 'sizing shop/Deployment/web --days 7',
      what: 'The requests and limits of a workload, by a week.',
    },
  ],
  status: [
    {
      words: 'status',
      what: 'Whether the broker works and what it knows.',
    },
    {
      words: 'status -o json',
      what: 'The same for a program: items with needsLook.',
    },
  ],
  trust: [
    {
      words: 'trust -n shop',
      what: 'The containers of a namespace, the worst first.',
    },
    {
      words: 'trust --fail-on wouldDeny,unknown',
      what: 'Exit code 1 unless everything is trusted.',
    },
  ],
  unshipped: [
    {
      words: 'unshipped --last 1d',
      what: 'What is new within a day.',
    },
    {
      words: 'unshipped -n shop --running true',
      what: 'In a namespace, on images that still run.',
    },
  ],
  usage: [
    {
      words: 'usage -n shop',
      what: 'The containers of a namespace.',
    },
  ],
  version: [
    {
      words: 'version',
      what: 'That of the release; GET /version has that of the broker.',
    },
  ],
  vex: [
    {
      words: 'vex sha256:0123456789ab --out vex.json',
      what: 'The decisions about an image, as OpenVEX.',
    },
  ],
  vulns: [
    {
      words: 'vulns -n shop --tier P0,P1',
      what: 'The urgent vulnerabilities of a namespace.',
    },
    {
      words: 'vulns --running true --fail-on p0 --fail-on kev',
      what: 'Exit code 1 if such a thing runs.',
    },
  ],
  workload: [
    {
      words: 'workload shop/Deployment/web',
      what: 'All that is known of a workload.',
    },
    {
      words: 'workload -n shop Deployment/web --fail-on p0',
      what: 'Exit code 1 if an image has a vulnerability of P0.',
    },
  ],
  workloads: [
    {
      words: 'workloads -n shop',
      what: 'The workloads of a namespace.',
    },
    {
      words: 'workloads --status risk -o name',
      what: 'Those at risk, as other commands take them.',
    },
  ],
}
