/**
 * The plan of every statement that serves a list or a look-up, on tables with thousands of rows. It is taken
 * while the route runs, in the session of the route, for the given parameters and as a generic plan.
 */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { type ContainerCursor, writeContainerCursor } from '../../lib/attestations/container-cursor.ts'
import { createStore } from '../../lib/audit/store.ts'
import type { Database, Gate, Sql } from '../../lib/db/index.ts'
import { declaredRoutes } from '../../lib/http/access.ts'
import { writeCursor } from '../../lib/http/request/cursor.ts'
import { PAGE_COMPONENTS } from '../../lib/supply-chain/cyclonedx.ts'
import { askOwn, askStored } from '../../lib/traffic/insert.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'

const ROWS = depth(5_000, 10_000)
/** Rows of the tables that are larger than a bound of a route, or whose look-ups look like walks if they are smaller. */
const MANY = 10_000
/** Rows of one pod: more than two pages. */
const BIG = 11_000
/** More rows than a pod, an address or a document has, and far fewer than a table. */
const FEW = 1_000
/**
 * Cost in the units of the planner: a look-up takes about ten, the rows of a node a few hundred, a walk through an
 * index thousands.
 */
const LOOKUP_COST = 500

interface Plan {
  'Node Type': string
  'Parent Relationship'?: string
  'Plan Rows': number
  'Index Cond'?: string
  'Total Cost': number
  Filter?: string
  'Relation Name'?: string
  'Index Name'?: string
  'Function Name'?: string
  Plans?: Plan[]
}
interface Statement {
  text: string
  plan: Plan
  parameters: number
}

/** A statement that was put together as one text. */
interface Composed {
  text: string
  values: never[]
}

const PREFIX = 'explain (format json) '
const home = await startApp()
let heard: Statement[] = []

/** The gate, with each statement explained by the session that then runs it. */
function explaining(gate: Gate): Gate {
  const listen = async (statement: (sql: Sql, isOutcomeUnknown: boolean) => unknown) => {
    let query: unknown
    let composed: Composed | undefined
    const answer = await gate((sql) => {
      const heardSql = new Proxy(sql, {
        get: (target, name) =>
          name !== 'unsafe'
            ? Reflect.get(target, name)
            : (text: string, values?: never[], options?: object) => {
                if (values !== undefined) composed = { text, values }
                return target.unsafe(text, values, options)
              },
      })
      const made = statement(heardSql, false) as ReturnType<typeof sql>
      const explained = composed
        ? (sql.unsafe(PREFIX + composed.text, composed.values, { prepare: false }) as never)
        : sql`explain (format json) ${made}`
      query = explained
      return explained
    })
    if (composed) {
      heard.push({ text: composed.text, parameters: composed.values.length, plan: planOf(answer[0]!) })
      return
    }
    const { string, types } = (query as { statement: { string: string; types: number[] } }).statement
    assert.ok(string.startsWith(PREFIX))
    heard.push({ text: string.slice(PREFIX.length), parameters: types.length, plan: planOf(answer[0]!) })
  }
  const call = async (statement: never) => {
    await listen(statement)
    return gate(statement)
  }
  const json: Gate['json'] = async (statement) => {
    await listen(statement)
    return gate.json(statement)
  }
  return Object.assign(call as unknown as Gate, { json, within: gate.within })
}

const planOf = (row: Record<string, unknown>) => (row['QUERY PLAN'] as { Plan: Plan }[])[0]!.Plan

const db: Database = Object.create(home.db, {
  read: { value: explaining(home.db.read) },
  ingest: { value: explaining(home.db.ingest) },
})
const deps = buildDeps({ config: home.deps.config, db, log: home.deps.log })
const app = createApp(deps, routes)

/** The generic plan, under the settings of the session of the route. */
function genericPlan({ text, parameters }: Statement): Promise<Plan> {
  return home.sql.begin(async (sql) => {
    for (const setting of [
      'enable_seqscan = off',
      'enable_bitmapscan = off',
      'enable_hashjoin = off',
      'enable_mergejoin = off',
      'jit = off',
    ])
      await sql.unsafe(`set local ${setting}`)
    await sql.unsafe('set local plan_cache_mode = force_generic_plan')
    await sql.unsafe(`prepare any_parameters as ${text}`)
    const values = Array.from({ length: parameters }, () => 'null').join(', ')
    const [row] = await sql.unsafe(`${PREFIX} execute any_parameters${parameters > 0 ? `(${values})` : ''}`)
    await sql.unsafe('deallocate any_parameters')
    return planOf(row!)
  })
}

interface Found {
  node: Plan
  /** Whether a limit above stops the node as soon as it has enough rows. */
  isLimited: boolean
}

function nodesOf(plan: Plan, isLimited = false): Found[] {
  const type = plan['Node Type']
  // A limit also stops nodes below those that pass rows on one by one.
  const passes =
    isLimited && ['Subquery Scan', 'Result', 'Incremental Sort', 'Nested Loop', 'Append', 'Merge Append'].includes(type)
  const below = type === 'Limit' || passes
  // The statement runs an `InitPlan`, such as a materialized CTE, as a whole.
  const isBelow = (child: Plan) => below && child['Parent Relationship'] !== 'InitPlan'
  return [{ node: plan, isLimited }, ...(plan.Plans ?? []).flatMap((child) => nodesOf(child, isBelow(child)))]
}

const shown = (node: Plan) =>
  `${node['Node Type']} ${node['Index Name'] ?? ''} ${node['Relation Name'] ?? ''} of ${node['Plan Rows']} rows`

interface Expected {
  /** The route returns the whole table, so it may walk an index from end to end. */
  isWhole?: boolean
  /** The route returns a number about the whole table, so it may read all of it. */
  isSummary?: boolean
  /** Another test counts what it reads, because the planner estimates it badly. */
  isCounted?: boolean
  /** It calls a function that the planner cannot inline. */
  isOpaque?: boolean
  /** Tables with one row for each node of the cluster, which are read whole. */
  walked?: readonly string[]
  /** The order comes only from an index, however many rows there are. */
  isOrdered?: boolean
  /** Tables with rows past their retention, which the query filters out: a job deletes them soon, so there are few. */
  expiring?: readonly string[]
}

/** Filters that only compare the time or, for a container, whether its pod is dead. */
const EXPIRY = /^(\(+(\w+\.)?(last_seen|last_reported|checked_at) >= |\(*NOT EXISTS|\(*NOT \(?SubPlan|$)|LEAST\(/i

function assertGood(
  plan: Plan,
  {
    isWhole = false,
    isSummary = false,
    isCounted = false,
    isOpaque = false,
    walked = [],
    isOrdered = false,
    expiring = [],
  }: Expected,
  text: string,
): void {
  for (const { node, isLimited } of nodesOf(plan)) {
    const type = node['Node Type']
    const of = `${shown(node)} in ${text}`
    if (walked.includes(node['Relation Name']!)) continue
    assert.ok(isSummary || !type.includes('Seq Scan'), of)
    assert.ok(
      isSummary || isCounted || type !== 'Sort' || node['Plan Rows'] <= (isOrdered ? 0 : FEW),
      `a sort of a whole table: ${of}`,
    )
    if (type === 'Function Scan' && !isOpaque)
      assert.match(node['Function Name']!, /^jsonb?_|^generate_series$|^unnest$/, `cannot be seen through: ${of}`)
    if (!/^(Index|Bitmap Index)/.test(type) || isWhole || isSummary) continue
    // Under a limit every entry must match, else the number of entries that are read has no bound.
    if (isLimited && expiring.includes(node['Relation Name']!)) assert.match(node.Filter ?? '', EXPIRY, of)
    else if (isLimited) assert.equal(node.Filter, undefined, `an index walked through for a few rows: ${of}`)
    else
      assert.ok(
        node['Index Cond'] !== undefined && node['Total Cost'] <= LOOKUP_COST,
        `an index walked from end to end: ${of}`,
      )
  }
}

const flow = (n: number, protocol: string) => ({
  uuid: `new-${n}`,
  pod_ip: '10.0.0.1',
  pod_port: '0',
  ip_protocol: protocol,
  traffic_type: 'EGRESS',
  traffic_in_out_ip: `10.250.0.${n}`,
  traffic_in_out_port: `new-${n}`,
  decision: 'ALLOW',
  time_stamp: '2024-05-01T10:00:00',
})

const imageDigest = (n: number) => `sha256:${n.toString(16).padStart(64, '0')}`

const PLACE: ContainerCursor = ['primary', 'ns-7', 'Deployment', 'web-107', 'app', imageDigest(7)]

interface Example extends Expected {
  path: string
  body?: unknown
  /** Number of statements; 1 by default. */
  statements?: number
  status?: number
}

/** One row for each node, rewritten every few seconds: an index on its time would cost more than it saves. */
const NODES = ['seccomp_node', 'seccomp_denial_node', 'compute_node']

/** The statements of a profile: some compute coverage in a function, and a workload has few rows in each table. */
const PROFILE = {
  ...{ isOpaque: true, isCounted: true, walked: [...NODES, 'flow_edge_cursor', 'flow_edge_pending'] },
  expiring: ['runtime_capability', 'runtime_executable', 'seccomp_denial'],
}

/** The statements of changes: each reads the records of some workloads or images whole, up to a bound. */
const CHANGES = {
  ...{ isOpaque: true, isCounted: true, walked: ['flow_edge_cursor', 'flow_edge_pending'] },
  expiring: ['runtime_executable', 'workload_profile_version'],
}

/** At least one example for each route that queries the database. */
const examples: Record<string, Example[]> = {
  'GET /pod/info': [
    // A page for each thousand rows, one that finds no further named pod, and one for pods without a namespace.
    { path: '/pod/info', statements: MANY / 1_000 + 2, isOrdered: true },
    { path: '/pod/info?include_dead=false', statements: (MANY * 0.8) / 1_000 + 2, isOrdered: true },
  ],
  'GET /pod/namespaces': [{ path: '/pod/namespaces' }],
  'GET /pod/name/:name': [{ path: '/pod/name/pod-7' }],
  'GET /pod/ip/:ip': [{ path: '/pod/ip/10.0.0.7' }, { path: '/pod/ip/10.0.0.7?at=2024-05-01T10:00:00' }],
  'GET /pod/list/:node': [{ path: '/pod/list/node-7' }],
  'GET /pod/traffic': ['', '?limit=1', '?limit=20000'].map((query) => ({
    path: `/pod/traffic${query}`,
    isOrdered: true,
  })),
  'GET /pod/traffic/:name': [
    { path: '/pod/traffic/pod-7', isOrdered: true },
    { path: '/pod/traffic/nobody', status: 404, isOrdered: true },
    { path: '/pod/traffic/big', statements: 4, isOrdered: true },
    { path: '/pod/traffic/odd', statements: 2, isOrdered: true },
  ],
  // A filter is applied to the flows in the order of time, up to a number of them.
  'GET /flows': [
    { path: '/flows', statements: 2, isOrdered: true },
    // A value that joined columns cannot carry.
    { path: '/flows?order=oldest&limit=3', statements: 3, isOrdered: true },
    // More flows than the first statement examines: what the filter names is looked up, and with it edges and pods.
    ...['ip=203.0.113.9', 'to_ip=203.0.113.0/24', 'pod=ns-7/nobody-*'].map((filter) => ({
      path: `/flows?${filter}`,
      statements: 4,
      walked: ['flow_edge_cursor', 'flow_edge_pending'],
      isOpaque: true,
    })),
    // The edges of the filter are looked through, and the flows of the pods that reported them are read.
    {
      path: '/flows?namespace=ns-7&label=a=b&node=n&workload=a/b',
      statements: 4,
      walked: ['flow_edge', 'flow_edge_cursor', 'flow_edge_pending'],
      isOpaque: true,
    },
  ],
  // Edges are grouped anew for each answer, all of them. With filters that edges do not keep, the flows of the range are.
  'GET /flows/edges': [
    { path: '/flows/edges', statements: 3, isSummary: true, isOpaque: true },
    { path: '/flows/edges?group=namespace&workload=a/b&since=7d', statements: 3, isSummary: true, isOpaque: true },
    { path: '/flows/edges?node=n&since=15m', statements: 4, isSummary: true, isOpaque: true },
    { path: '/flows/edges?ip=203.0.113.9', statements: 4, isSummary: true, isOpaque: true },
  ],
  // Policies are made from the edges, pods and services of a namespace; no labels of its pods are known here.
  'GET /workloads/:namespace/:kind/:name/networkpolicy': [
    {
      path: '/workloads/ns-7/Deployment/web-7/networkpolicy',
      ...{ status: 404, statements: 6, isSummary: true, isOpaque: true },
    },
  ],
  'GET /namespaces/:namespace/networkpolicies': [
    { path: '/namespaces/ns-7/networkpolicies', status: 409, statements: 6, isSummary: true, isOpaque: true },
  ],
  // A trial reads all edges, and the pods and services of their namespaces.
  'POST /networkpolicy/try': [
    {
      path: '/networkpolicy/try?namespace=ns-7',
      body: {
        ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name: 'p', namespace: 'ns-7' } },
        spec: { podSelector: {} },
      },
      ...{ statements: 5, isSummary: true, isOpaque: true },
    },
  ],
  'GET /flows/hints': [
    ...['namespace', 'node', 'pod', 'service', 'ip', 'port'].map((field) => ({
      path: `/flows/hints?field=${field}&prefix=a`,
    })),
    // Up to ten thousand rows are searched.
    { path: '/flows/hints?field=workload&prefix=a', walked: ['pod'] },
    { path: '/flows/hints?field=label&prefix=a', walked: ['pod_labels'], isOpaque: true },
  ],
  'GET /pod/syscalls/:name': [{ path: '/pod/syscalls/pod-7' }],
  'GET /svc/info': [{ path: '/svc/info', isWhole: true }],
  'GET /svc/ip/:ip': [{ path: '/svc/ip/10.96.0.7' }],
  'GET /compute/history/:pod_uid': [
    { path: '/compute/history/uid-7?minutes=10080', statements: 2, isOpaque: true },
    { path: '/compute/history/odd?minutes=10080', statements: 2, isOpaque: true },
  ],
  'GET /compute/contention': [
    { path: '/compute/contention?namespace=ns-7', isCounted: true },
    { path: '/compute/contention?node=node-7&minutes=360', isCounted: true },
    { path: '/compute/contention?node=node-7&namespace=ns-7', isCounted: true },
    { path: '/compute/contention?node=node-7&minutes=10080', isOpaque: true },
    { path: '/compute/contention?namespace=odd', statements: 2, isCounted: true },
    { path: '/compute/contention?pod_uid=uid-7&minutes=360', isCounted: true },
    { path: '/compute/contention?pod_uid=uid-7&node=node-7&namespace=ns-7&per_victim=5', isCounted: true },
  ],
  'GET /compute/latest': [
    { path: '/compute/latest?namespace=ns-7', expiring: ['compute_latest'] },
    { path: '/compute/latest?namespace=odd', statements: 2, expiring: ['compute_latest'] },
    { path: '/compute/latest?namespace=ns-7&kind=Deployment&workload=web-7', expiring: ['compute_latest'] },
    { path: '/compute/latest?namespace=ns-7&workload=web-7&limit=10', expiring: ['compute_latest'] },
  ],
  'GET /compute/nodes': [{ path: '/compute/nodes', isWhole: true }],
  // What these read is counted with data: test/compute/workloads.get.test.ts and test/runtime/unshipped.get.test.ts.
  'GET /compute/workloads/:namespace/:kind/:name': ['Deployment/web-7', 'Pod/pod-7'].map((workload) => ({
    path: `/compute/workloads/ns-7/${workload}`,
    isOpaque: true,
  })),
  'GET /runtime/unshipped': ['', '?namespace=ns-7&running=true&since=2024-04-30T23:00:00Z&limit=500'].map((query) => ({
    path: `/runtime/unshipped${query}`,
    isOpaque: true,
  })),
  'GET /seccomp/denials': [
    '',
    '?since=2024-04-30T23:00:00Z&limit=500',
    '?namespace=ns-7',
    '?namespace=ns-7&since=2024-04-30T23:00:00Z&limit=1',
    '?namespace=ns-7&kind=Deployment&workload=web-107',
    '?namespace=ns-7&kind=Deployment&workload=web-107&since=2024-04-30T23:00:00Z&limit=500',
  ].map((query) => ({ path: `/seccomp/denials${query}`, isOrdered: true })),
  'GET /audit/verdicts': [
    '',
    '?policy=p-7',
    '?namespace=ns-7',
    '?policy=p-7&namespace=ns-7',
    '?verdict=Allow&direction=Egress&limit=500',
  ].map((query) => ({ path: `/audit/verdicts${query}`, isOrdered: false })),
  'GET /images': [
    { path: '/images', isOrdered: true },
    { path: '/images?limit=500', isOrdered: true },
    { path: '/images?repository=r-7' },
    { path: `/images?repository=r-7&after=${imageDigest(7)}` },
    { path: '/images?repository=r-7&namespace=ns-7' },
    { path: '/images?namespace=ns-7' },
    { path: `/images?namespace=ns-7&limit=500&after=${imageDigest(7)}` },
  ],
  'GET /images/:digest': [{ path: `/images/${imageDigest(7)}` }, { path: `/images/${imageDigest(0)}`, status: 404 }],
  'GET /images/:digest/vulnerabilities': [
    '',
    '?limit=500',
    `?after=${writeCursor([2, 'CVE-7000', 'p', '1'])}`,
    '?severity=CRITICAL,MEDIUM&fixable=true&source=operator-scanner',
    // These filters do not follow the order of the list, so every row of the payloads of the image is read.
    '?kev=true&epss_min=0.5',
    '?vuln_id=CVE-7&package=p&fixable=true',
    '?tier=P0,P1&in_use=executed',
  ].map((query) => ({
    path: `/images/${imageDigest(7)}/vulnerabilities${query}`,
    ...{ isCounted: true, isOpaque: true },
    isWhole: /kev|vuln_id|tier/.test(query),
  })),
  // SBOMs, reports and files of both images are read whole; each read has a bound.
  'GET /images/:digest/diff/:other': [
    { path: `/images/${imageDigest(7)}/diff/${imageDigest(8)}`, statements: 4, ...CHANGES, isWhole: true },
    { path: `/images/${imageDigest(0)}/diff/${imageDigest(9)}`, statements: 4, ...CHANGES, isWhole: true },
  ],
  'GET /workloads/:namespace/:kind/:name/diff': [
    { path: '/workloads/ns-7/Deployment/web-57/diff', statements: 7, ...CHANGES },
    { path: '/workloads/ns-7/Deployment/web-57/diff?from=2024-04-30T00:00:00Z&to=2d', statements: 7, ...CHANGES },
    { path: '/workloads/ns-7/Deployment/nobody/diff', status: 404, statements: 2 },
  ],
  // The containers of a namespace are read whole.
  'GET /changes': [{ path: '/changes?namespace=ns-7', statements: 7, ...CHANGES, isWhole: true }],
  'GET /images/:digest/sbom': [
    `/images/${imageDigest(7)}/sbom`,
    `/images/${imageDigest(7)}/sbom?limit=500&after=5000&source=registry`,
    `/images/${imageDigest(0)}/sbom`,
  ].map((path) => ({ path })),
  // Each reading of the text is a function with settings of its own, as is the list of images with a package.
  'GET /search': ['CVE-7', 'web-7', 'ns-7/web-7', 'pkg:npm/p@1', imageDigest(7), 'r-7:v1', '10.0.0.7'].map((text) => ({
    path: `/search?q=${encodeURIComponent(text)}`,
    ...{ isOpaque: true, isWhole: true, isCounted: true },
  })),
  'GET /components': ['name=p', 'purl=pkg:npm/p@1&running=true&in_use=unknown'].map((query) => ({
    path: `/components?${query}`,
    ...{ isOpaque: true, isWhole: true, isCounted: true },
  })),
  'GET /images/:digest/sbom/cyclonedx': [
    { path: `/images/${imageDigest(7)}/sbom/cyclonedx`, statements: 1 + MANY / PAGE_COMPONENTS },
    { path: `/images/${imageDigest(0)}/sbom/cyclonedx`, status: 404 },
  ],
  'GET /workloads/:namespace/:kind/:name/containers': [
    { path: '/workloads/ns-7/Deployment/web-7/containers' },
    { path: '/workloads/ns-7/Deployment/nobody/containers', status: 404 },
  ],
  // One function computes the coverage. A filter by origin reads every executable of the workload.
  'GET /workloads/:namespace/:kind/:name/runtime': [
    ...['', '?limit=5000', '?container=app', '?kind=lib', '?container=app&kind=exec&limit=1'].map((query) => ({
      path: `/workloads/ns-7/Deployment/web-7/runtime${query}`,
      isOpaque: true,
    })),
    ...['?origin=unshipped', '?origin=memfd&container=app&kind=exec'].map((query) => ({
      path: `/workloads/ns-7/Deployment/web-7/runtime${query}`,
      isOpaque: true,
      isWhole: true,
    })),
  ],
  'GET /workloads/:namespace/:kind/:name/capabilities': [
    {
      path: '/workloads/ns-7/Deployment/web-7/capabilities',
      isOpaque: true,
      expiring: ['runtime_capability'],
    },
  ],
  // Filters, and whether a pod is alive, are checked for one workload after the other; the list is as long as a cluster.
  'GET /workloads': [
    ...['', '?limit=500&include_gone=true', '?namespace=ns-7', '?status=unknown&search=WEB&kind=Deployment'],
    ...['?namespace=ns-7&after=ns-7/Deployment/web-7'],
  ].map((query) => ({ path: `/workloads${query}`, isWhole: true })),
  'GET /workloads/:namespace/:kind/:name/profile/versions': ['', '?limit=200&before=7'].map((query) => ({
    path: `/workloads/ns-7/Deployment/web-7/profile/versions${query}`,
  })),
  'GET /workloads/:namespace/:kind/:name/profile/versions/:revision': [
    { path: '/workloads/ns-7/Deployment/web-7/profile/versions/1' },
  ],
  'GET /workloads/:namespace/:kind/:name/profile/diff': ['', '?from=1&to=3', '?to=1'].map((query) => ({
    path: `/workloads/ns-7/Deployment/web-7/profile/diff${query}`,
  })),
  // A profile is put together from several statements, some of which compute coverage in a function.
  'GET /workloads/:namespace/:kind/:name/profile': [
    { path: '/workloads/ns-7/Deployment/web-57/profile', statements: 11, ...PROFILE },
    { path: '/workloads/ns-7/Deployment/nobody/profile', status: 404 },
  ],
  // A draft of VEX reads all findings of the images.
  'GET /workloads/:namespace/:kind/:name/export': [
    {
      path: '/workloads/ns-7/Deployment/web-57/export?artifacts=vex,securitycontext',
      statements: 12,
      isWhole: true,
      ...PROFILE,
    },
  ],
  'POST /workloads/:namespace/:kind/:name/export': [
    { path: '/workloads/ns-7/Deployment/web-57/export?artifacts=vex', statements: 12, isWhole: true, ...PROFILE },
  ],
  // The first page of a part judges all of its rows, the others no more than they show.
  'GET /coverage': [
    ...['/coverage', '/coverage?namespace=ns-7'].map((path) => ({
      ...{ path, statements: 4, isSummary: true, isOpaque: true },
    })),
    ...[
      ['images', imageDigest(7)],
      ['containers', 'ns-7', 'Deployment', 'web-7', 'app', imageDigest(7)],
      ['nodes', 'node-7'],
      ['workloads', 'ns-7', 'Deployment', 'web-7'],
    ].flatMap((place) =>
      ['', '&namespace=ns-7&limit=500'].map((query) => ({
        path: `/coverage?part=${place[0]}&after=${writeCursor(place)}${query}`,
        ...{ isSummary: true, isOpaque: true },
      })),
    ),
  ],
  'GET /images/:digest/runtime': [
    '',
    '?limit=5000&kind=lib',
    '?after=exec:/bin/7',
    `?limit=1&after=lib:${'x'.repeat(260)}`,
  ].map((query) => ({
    path: `/images/${imageDigest(7)}/runtime${query}`,
    expiring: ['runtime_executable'],
  })),
  'GET /vulnerabilities': [
    { path: '/vulnerabilities' },
    { path: '/vulnerabilities?limit=500' },
    { path: '/vulnerabilities?severity=CRITICAL,MEDIUM,NONE&fixable=true&running=true&namespace=ns-7' },
    // test/supply-chain/summary.test.ts counts what these read.
    ...['?kev=true', '?epss_min=0.5&severity=LOW', '?vuln_id=CVE-7', '?package=p&namespace=ns-7', '?in_use=loaded'].map(
      (query) => ({
        path: `/vulnerabilities${query}`,
        isCounted: true,
      }),
    ),
    { path: `/vulnerabilities?after=${Buffer.from('[2,3,"CVE-7"]').toString('base64url')}` },
  ],
  // Functions that are planned by themselves: few decisions are about one vulnerability or image.
  'GET /vulnerabilities/:id/decisions': [
    { path: '/vulnerabilities/CVE-7/decisions' },
    { path: '/vulnerabilities/GHSA-7/decisions?limit=500&after=100' },
  ],
  'GET /images/:digest/vex': [
    { path: `/images/${imageDigest(7)}/vex`, statements: 2, isOpaque: true },
    { path: `/images/${imageDigest(7)}/vex?format=cyclonedx`, statements: 2, isOpaque: true },
    { path: `/images/${imageDigest(0)}/vex`, status: 404, isOpaque: true },
  ],
  'GET /images/:digest/attestation': [
    { path: `/images/${imageDigest(7)}/attestation` },
    { path: `/images/${imageDigest(0)}/attestation`, status: 404 },
  ],
  'GET /attestations': [
    { path: '/attestations', isOrdered: true },
    { path: `/attestations?limit=500&after=${imageDigest(7)}`, isOrdered: true },
    { path: `/attestations?verdict=unsigned&after=${imageDigest(7)}`, isOrdered: true },
    { path: `/attestations?repository=r-7&after=${imageDigest(7)}` },
    { path: `/attestations?repository=r-7&verdict=verified&limit=500`, isOrdered: true },
  ].map((one) => ({ ...one, expiring: ['image_attestation'] })),
  // One statement for the containers, one for the results of their images.
  'GET /attestations/running': [
    { path: '/attestations/running', statements: 2, isOrdered: true },
    { path: `/attestations/running?limit=200&after=${writeContainerCursor(PLACE)}`, statements: 2, isOrdered: true },
    { path: '/attestations/running?namespace=ns-7', statements: 2, isOrdered: true },
    {
      path: `/attestations/running?namespace=ns-7&after=${writeContainerCursor(PLACE)}`,
      statements: 2,
      isOrdered: true,
    },
  ],
  'GET /attestations/policy': [
    // For the whole cluster all containers are read, for a namespace only its own.
    { path: '/attestations/policy', status: 422, isSummary: true },
    { path: '/attestations/policy?namespace=ns-7', statements: 2, isWhole: true },
    // Also reads what runs in other namespaces under the same names.
    { path: '/attestations/policy?namespace=ns-7&format=policy-engine-b', status: 422, statements: 2, isSummary: true },
    { path: '/attestations/policy?namespace=ns-50', isWhole: true },
  ],
  'GET /seccomp/profiles/:namespace/:kind/:name/export': [
    { path: '/seccomp/profiles/ns-7/Deployment/web-7/export' },
    { path: '/seccomp/profiles/ns-7/Deployment/nobody/export', status: 404 },
  ],
  'POST /seccomp/profiles/:namespace/:kind/:name/export': [
    { path: '/seccomp/profiles/ns-7/Deployment/web-7/export', body: { add: ['brk'] } },
  ],
  // One statement counts, two call functions that read everything listed.
  'GET /seccomp/profiles': [{ path: '/seccomp/profiles', statements: 3, isWhole: true, isOpaque: true }],
  'GET /seccomp/profiles/:namespace/:kind/:name': [
    { path: '/seccomp/profiles/ns-7/Deployment/web-7', walked: NODES, expiring: ['seccomp_denial'] },
    { path: '/seccomp/profiles/ns-7/Deployment/web-7?detail=true', walked: NODES, expiring: ['seccomp_denial'] },
    { path: '/seccomp/profiles/ns-7/Deployment/nobody', status: 404, walked: NODES, expiring: ['seccomp_denial'] },
  ],
  'GET /seccomp/profile-file/:namespace/:kind/:name/:hash': [
    { path: '/seccomp/profile-file/ns-7/Deployment/web-7/0123456789abcdef' },
    { path: '/seccomp/profile-file/ns-7/Deployment/web-7/0', status: 404 },
  ],
  // What it reads is counted with data: test/compute/findings-plans.test.ts.
  'GET /compute/findings': ['', '?namespace=ns-7', '?node=node-7', '?namespace=ns-7&node=node-7'].map((query) => ({
    path: `/compute/findings${query}`,
    isCounted: true,
    walked: ['compute_container'],
  })),
  'POST /pod/traffic': [
    { path: '/pod/traffic', body: flow(1, 'TCP') },
    { path: '/pod/traffic', body: flow(2, 'TCP') },
    { path: '/pod/traffic', body: flow(3, 'UDP') },
  ],
  'POST /pod/traffic/batch': [
    { path: '/pod/traffic/batch', body: [flow(4, 'TCP'), flow(5, 'SCTP')] },
    // A flow that was expected to be new and is not takes a second statement.
    { path: '/pod/traffic/batch', body: [{ ...flow(8, 'TCP'), uuid: 'new-4' }], statements: 2 },
    { path: '/pod/traffic/batch', body: [flow(6, 'TCP'), flow(4, 'UDP')] },
  ],
  'GET /node/status': [{ path: '/node/status', isSummary: true }],
  'GET /cluster/environment': [{ path: '/cluster/environment', isSummary: true }],
  'POST /node/facts': [
    {
      path: '/node/facts',
      body: { node_name: 'n', provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'ipv4', node_os: 'cos' },
    },
  ],
  'PUT /seccomp/crs/:namespace/:name': [{ path: '/seccomp/crs/shop/web', body: { spec: {} } }],
  'DELETE /seccomp/crs/:namespace/:name': [{ path: '/seccomp/crs/shop/nothing', status: 404 }],
  'POST /pod/mark_dead': [
    { path: '/pod/mark_dead', body: { pod_name: 'pod-7' } },
    { path: '/pod/mark_dead', body: { pod_name: 'pod-7', pod_ip: '10.0.0.7' } },
  ],
}
/** These use no database, use another gate, or call a single function that the planner cannot inline. */
const WITHOUT = new Set([
  'GET /',
  'GET /health',
  'GET /image-trust',
  'GET /metrics',
  'GET /openapi.json',
  'GET /version',
  'GET /vulnerabilities/:id/exposure',
  'POST /pod/spec',
  'POST /svc/spec',
  'POST /pod/syscalls',
  'POST /seccomp/node-status',
  'POST /seccomp/profiles/:namespace/:kind/:name/reset',
  'POST /images/:digest/vulnerabilities',
  'POST /images/:digest/sbom',
  'POST /vex',
  'PUT /vulnerabilities/:id/decision',
  'POST /images/:digest/attestation',
  'POST /runtime/capabilities',
  'POST /runtime/coverage',
  'POST /seccomp/denials',
  'POST /runtime/executables',
  'POST /pod/compute/batch',
  'POST /pod/compute/history/batch',
])

describe('plans', () => {
  before(async () => {
    const { sql } = home
    await sql`
      insert into pod (pod_name, pod_ip, pod_namespace, pod_obj, time_stamp, node_name, is_dead, pod_ips, started_at,
                       workload_kind, workload_name)
      select 'pod-' || n, '10.0.' || (n >> 8) || '.' || (n & 255), 'ns-' || n % 50, '{}', timestamp '2024-05-01', 'node-' || n % 400,
             n % 5 = 0, array['10.0.' || (n >> 8) || '.' || (n & 255), 'fd00::' || n], timestamp '2024-04-01',
             'Deployment', 'web-' || n % 1000
      from generate_series(1, ${MANY}::int) n`
    await sql`insert into pod_address (ip, pod_name) select unnest(pod_ips), pod_name from pod`
    await sql`
      insert into service (svc_ip, svc_name, svc_namespace, service_spec, time_stamp)
      select '10.96.' || (n >> 8) || '.' || (n & 255), 'svc-' || n, 'ns-' || n % 50, '{}', timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into pod_syscalls (pod_name, pod_namespace, syscalls, arch, time_stamp)
      select 'pod-' || n, '', 'read,write', 'x86_64', timestamp '2024-05-01' from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into traffic (uuid, pod_name, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip, traffic_in_out_port, decision, time_stamp)
      select 'flow-' || n, case when n <= ${BIG} then 'big' else 'pod-' || n % 500 end, '10.0.' || n % 100 || '.1', '0',
             case n % 10 when 0 then 'UDP' else 'TCP' end, 'EGRESS', '10.1.' || (n >> 8) || '.' || (n & 255), '443', 'ALLOW',
             timestamp '2024-05-01' - n * interval '1 second'
      from generate_series(1, ${MANY + BIG}::int) n`
    await sql`
      insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, dst_port, protocol, reason, observed_at, verdict)
      select '', 'ns-' || n % 20, 'p-' || n % 30, case n % 3 when 0 then 'Ingress' else 'Egress' end, 443, 'TCP', '',
             timestamp '2024-05-01' - n * interval '1 second', case n % 7 when 0 then 'WouldDeny' else 'Allow' end
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, node_name, syscall, action, count, first_seen, last_seen)
      select 'uid-' || n / 4, 'pod-' || n / 4, 'ns-' || n % 50, 'Deployment', 'web-' || n % 1000, 'node-1', 'call-' || n, 'SCMP_ACT_ERRNO', 1,
             timestamp '2024-04-01', timestamp '2024-05-01' - n * interval '1 second'
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into image (digest, repository, tags, digest_kind, first_seen, last_seen)
      select 'sha256:' || lpad(to_hex(n), 64, '0'), 'r-' || n % 500, '{}', 'repo', timestamp '2024-05-01', timestamp '2024-05-01'
      from generate_series(1, ${MANY}::int) n`
    await sql`
      insert into workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, container_kind,
                                      image_ref, security_context, pod_security, last_pod_name, first_seen, last_seen)
      select 'primary', 'ns-' || n % 50, 'Deployment', 'web-' || n % 1000, 'app', 'sha256:' || lpad(to_hex(n / 2), 64, '0'), 'regular',
             'r:1', '{}', '{}', 'pod-' || n, timestamp '2024-05-01', timestamp '2024-05-01'
      from generate_series(2, ${MANY}::int) n`
    await sql`
      insert into cve_summary (vuln_id, scope_namespace, severity, is_fixable, images, workloads, running_workloads, namespaces, join_rank)
      select 'CVE-' || n / 2, case n % 2 when 0 then '' else 'ns-' || n % 50 end, n % 6, n % 3 = 0, 1, 1, n % 7, 1, 1
      from generate_series(2, ${ROWS}::int) n`
    await sql`insert into cve_detail select 'CVE-' || n, 5, '{openssl}', '{registry}' from generate_series(1, ${ROWS / 2}::int) n`
    await sql`insert into cve_summary_state (refreshed_at) values (timestamp '2024-05-01')`
    // As many payloads as images, each linked to one; the payloads of the requested image are large.
    await sql`
      insert into image_report
      select 'sha256:' || lpad(to_hex(n), 64, '0'), s.source, k.kind, 'unknown', '{}', null, '{}', null, null, null, null, null, null, null, null,
             timestamp '2024-05-01', null, null, null, false, '[]', '', null, null, case n when 7 then ${MANY}::int else 0 end, '{}', null, null,
             '', timestamp '2024-05-01'
      from generate_series(1, ${MANY / 10}::int) n, unnest('{db-matcher,operator-scanner,registry}'::text[]) s(source),
           unnest('{vulnerabilities,sbom}'::text[]) k(kind)`
    await sql`
      insert into image_link
      select distinct digest, source, digest, 1, timestamp '2024-05-01' from image_report`
    await sql`
      insert into image_finding
      select ${imageDigest(7)}, s.source, (n * 7 + length(s.source)) % 6, 'CVE-' || n, 'p', '1', null, null, '{}', null, '{}', null, null, null, null,
             null, null, '{}', null, null, null, null
      from generate_series(1, ${ROWS}::int) n, unnest('{db-matcher,operator-scanner,registry}'::text[]) s(source)`
    await sql`
      insert into image_component
      select ${imageDigest(7)}, s.source, n, 'c-' || n, null, null, null, null, null, null, '{}', null, '{}'
      from generate_series(1, ${MANY}::int) n, unnest('{operator-scanner,registry}'::text[]) s(source)`
    await sql`
      insert into image_attestation
      select 'sha256:' || lpad(to_hex(n), 64, '0'), 'r-' || n % 500, (array['verified', 'unsigned', 'unknown'])[1 + n % 3], null, null, null, null,
             l.signatures, '[]', l.signatures, '[]', '[]', '[]', '', timestamp '2024-05-01', timestamp '2024-05-01'
      from generate_series(1, ${MANY}::int) n
      cross join (values ('[{"format":"f","verified":true,"issuer":"https://i.test","san":"https://s.test"}]')) l(signatures)`
    await sql`insert into cve_fact select 'CVE-' || n, true, null, 0.5, 0.5 from generate_series(1, ${ROWS}::int) n`
    await sql`insert into cve_news (vuln_id) select 'CVE-' || n from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into workload_syscalls
      select 'ns-' || n % 50, 'Deployment', 'web-' || n, 'read,write', '{x86_64}', '0123456789abcdef', 2, timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`update pod set workload_kind = 'Deployment', workload_name = 'web-' || split_part(pod_name, '-', 2)::int / 4`
    await sql`
      insert into workload_syscalls_seen
      select 'ns-' || n % 50, 'Deployment', 'web-' || n, '{read,write}', '{2024-05-01,2024-05-01}', '{2024-05-01,2024-05-01}', '{0,0}', '{}', '{}'
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into pod_instance (pod_name, pod_namespace, instance, workload_kind, workload_name, capture_level, level_since, first_post, last_post,
                                first_seen, last_seen)
      select pod_name, pod_namespace, '', workload_kind, workload_name, 'full', time_stamp, time_stamp, time_stamp, time_stamp, time_stamp
      from pod where pod_namespace is not null`
    await sql`
      insert into syscall_contribution
      select pod_name, pod_namespace, instance, workload_kind, workload_name, 'read,write', '{x86_64}', 'full', first_post, false, null, first_post
      from pod_instance`
    await sql`
      insert into unattributed_syscalls
      select 'lost-' || n, '', n % 2 = 0, 'read', '{x86_64}', timestamp '2024-05-01', timestamp '2024-05-01' from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into seccomp_cr
      select 'ns-' || n % 50, 'web-' || n, 'SCMP_ACT_LOG', '{}', 'read', 1, 'Deployment', 'web-' || n, 'h', 0, 0, 'Pending', timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`insert into seccomp_file_set select sha256(n::text::bytea) from generate_series(1, 20) n`
    await sql`
      insert into seccomp_file
      select 'kguardian/ns-' || f % 50 || '/web-' || f || '.json', sha256(n::text::bytea), 'h'
      from generate_series(1, 20) n, generate_series(1, ${ROWS / 20}::int) f`
    await sql`
      insert into seccomp_node select 'node-' || n, sha256((1 + n % 20)::text::bytea), now() at time zone 'utc' from generate_series(1, 400) n`
    await sql`insert into seccomp_denial_node select 'node-' || n, true, 10, '{}', now() at time zone 'utc' from generate_series(1, 400) n`
    await sql`
      insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
      select 'uid-' || n, 'pod-' || n, 'ns-' || n % 50, 'Deployment', 'web-' || n % 1000, 'bpf', 'SCMP_ACT_LOG', 1, timestamp '2024-05-01',
             timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into seccomp_cr
      select 'put-' || n % 50, 'cr-' || n, 'SCMP_ACT_LOG', '{}', 'read,write', 2, 'Deployment', 'web-' || n, 'h', 0, 0, 'Pending', timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path, path_hash,
                                      path_complete, source, origin, first_seen, last_seen)
      select 'primary', 'ns-' || n % 50, 'Deployment', 'web-' || n % 1000, 'app', 'sha256:' || lpad(to_hex(n % 100), 64, '0'),
             (array['exec', 'lib'])[1 + n % 2], '/bin/' || n, sha256(convert_to('/bin/' || n, 'UTF8')), true, 'ebpf', 'image',
             timestamp '2024-05-01', timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into runtime_coverage (cluster_id, container_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, pod_name,
                                    node_name, mode, exec_probe, lib_probe, start_mode, tracking_since, covered_since, last_heartbeat, heartbeat_secs,
                                    gaps, events_dropped, unsent, incomplete, ended)
      select 'primary', 'c' || n, 'ns-' || n % 50, 'Deployment', 'web-' || n % 1000, 'app', 'sha256:' || lpad(to_hex(n % 1000), 64, '0'), 'pod-' || n,
             'node-1', 'full', true, true, 'start', timestamp '2024-05-01', timestamp '2024-05-01', timestamp '2024-05-01', 300, 0, 0, 0, false, false
      from generate_series(1, ${MANY}::int) n`
    await sql`
      insert into runtime_capability (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, capability, granted,
                                      probed, count, first_seen, last_seen, last_reported, last_post)
      select 'primary', 'ns-' || n % 50, 'Deployment', 'web-' || n % 1000, 'app', 'sha256:' || lpad(to_hex(n % 1000), 64, '0'), 'CAP_' || n, true,
             false, 1, timestamp '2024-05-01', timestamp '2024-05-01', timestamp '2024-05-01', gen_random_uuid()
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into workload_profile
      select 'primary', 'ns-' || n % 50, 'Deployment', 'web-' || n, 3, 'h', 'ok', '{}', false, false, timestamp '2024-05-01', timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into workload_profile_failure
      select 'primary', 'ns-' || n % 50, 'Deployment', 'web-' || n, 'x', timestamp '2024-05-01' from generate_series(1, ${ROWS}::int) n where n % 10 = 0`
    await sql`
      insert into workload_profile_version
      select 'primary', 'ns-' || n % 50, 'Deployment', 'web-' || n, r, 'h', '{}', '{}',
             '{"images":{"containers":{}},"network":{"rules":[]},"podSecurity":{"level":null,"pod":null,"containers":{}},"syscalls":{}}', timestamp '2024-05-01'
      from generate_series(1, ${ROWS / 4}::int) n, generate_series(1, 3) r`
    await sql`
      insert into compute_node
      select 'node-' || n, now(), 5000, 1, true, true, true, 1, 1, 1, 1, 8, 1, 1, 1, 1, 0, null, null, now() from generate_series(0, 399) n`
    await sql`
      insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
      select 'uid-' || n || '/app', case n when 1 then 'odd' else 'uid-' || n / 2 end, case n when 1 then 'odd' else 'ns-' || n % 50 end,
             case n when 1 then e'\\x1f' else 'pod-' || n / 2 end, 'app', 'node-' || n % 400
      from generate_series(1, ${ROWS}::int) n`
    for (const table of ['compute_minute', 'compute_folded', 'compute_contention'])
      await sql`select compute_make_days(${table}, (now() at time zone 'utc')::date, 0)`
    // The statistics know only rows of a few containers for today.
    for (const [table, more] of [
      ['compute_minute', ', false'],
      ['compute_folded', ''],
    ])
      await sql.unsafe(`
        insert into ${table}
        select nextval('compute_history_id'), c.id, date_trunc('day', now() at time zone 'utc') + make_interval(days => d, secs => 60 * m), 300, 0.5, 1, 1, null,
               100000, null, null, 0, 0, 0, 0.5, 1, 0, 0, 1, 1, 1, 1, 1, 1, null, null, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, null, null, null, null, null,
               null${more}
        from compute_container c, generate_series(-1, 0) d, generate_series(0, 1) m
        where d = -1 or c.id <= 2`)
    await sql`
      insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, count, wait_ns)
      select c.id, date_trunc('day', now() at time zone 'utc') + make_interval(days => d, secs => 60 * m), 'pod', 'r', 1, 1
      from compute_container c, generate_series(-1, 0) d, generate_series(0, 1) m
      where d = -1 or c.id <= 2`
    await sql`
      insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, count, wait_ns)
      select c.id, now() at time zone 'utc', 'pod', e'\\x1f', 1, 1 from compute_container c where c.namespace = 'odd'`
    await sql`
      insert into compute_latest
      select 'uid-' || n || '/app', 'uid-' || n, case n when 1 then 'odd' else 'ns-' || n % 50 end, case n when 1 then e'\\x1f' else 'pod-' || n end, 'app',
             'node-' || n % 400, n, now(), 5000, 0.5, null, 100000, null, null, 0, 0, 0, 0, 0, 1, 1, null, null, 0, 0, 0, 0, 0, 0, 0, null, null, null, null,
             null, null, '[]', 0, 0, now()
      from generate_series(1, ${ROWS}::int) n`
    await sql`insert into traffic (uuid, pod_name, time_stamp) values (e'odd\\x1f', 'odd', timestamp '2000-01-01')`
    await sql`
      insert into workload_profile_export (cluster_id, pod_namespace, workload_kind, workload_name, content_hash, mode, artifacts, images, pod_security, exported_at)
      select 'primary', 'ns-' || n % 50, 'Deployment', 'web-' || n % 1000, 'h', 'audit', '{}', '{"containers": {}}',
             '{"level": null, "pod": null, "containers": {}}', timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`
      insert into flow_edge (id, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, traffic_in_out_ip, is_public, port, ip_protocol,
                             decision, flows, pods, first_seen_at, last_new_at, counted_at)
      select gen_random_uuid(), 'EGRESS', 'ns-' || n % 50, 'Deployment', 'web-' || n % 1000, '10.0.0.' || n, false, '80', 'TCP', 'ALLOW', 1, 1,
             timestamp '2024-05-01', timestamp '2024-05-01', timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n
      where n % 1000 <> 7`
    await sql`
      insert into vuln_decision (vuln_id, name, scope_rank, image_digest, decision, decided_by, reason, decided_at)
      select 'CVE-' || n, 'CVE-' || n, 1, 'sha256:' || lpad(to_hex(n), 64, '0'), 'accepted', 'a', 'b', timestamp '2024-05-01'
      from generate_series(1, ${ROWS}::int) n`
    await sql`insert into cve_decided select 'CVE-' || n, '', 1 from generate_series(1, ${ROWS}::int) n`
    await sql`insert into cve_alias (vuln_id, alias) select 'CVE-' || n, 'GHSA-' || n from generate_series(1, ${ROWS}::int) n`
    await sql.unsafe('analyze')
  })

  for (const [route, all] of Object.entries(examples)) {
    for (const { path, body, statements = 1, status = 200, ...expected } of all) {
      test(`${route} as ${path} ${body === undefined ? '' : JSON.stringify(body).slice(0, 60)}`, async () => {
        heard = []
        const headers = { 'content-type': 'application/json' }
        const method = route.split(' ')[0]!
        const answer = await app.request(
          path,
          body === undefined ? { method } : { method, headers, body: JSON.stringify(body) },
        )
        await answer.text()
        assert.equal(answer.status, status)
        assert.equal(heard.length, statements)
        for (const statement of heard) {
          assertGood(statement.plan, expected, statement.text)
          assertGood(await genericPlan(statement), expected, `${statement.text} for any parameters`)
        }
      })
    }
  }

  const found = flow(4, 'TCP')
  const asked: Record<string, () => Promise<unknown>> = {
    'flows that may be duplicates of each other': () => askStored(db.ingest, [{ n: 0, ...found }]),
    'flows of a post whose answer was lost': () => askOwn(db.ingest, [{ n: 0, ...found }], true),
    'the cause of a drop': () =>
      createStore(db).cause({ uuid: found.uuid, time_stamp: found.time_stamp, cause: 'no-policy' }),
  }
  for (const [what, ask] of Object.entries(asked))
    test(`statements beside the posts of flows: ${what}`, async () => {
      heard = []
      await ask()
      assert.equal(heard.length, 1)
      for (const statement of heard) {
        assertGood(statement.plan, {}, statement.text)
        assertGood(await genericPlan(statement), {}, `${statement.text} for any parameters`)
      }
    })

  test('every route that queries the database has an example', () => {
    const known = [...declaredRoutes(routes.flatMap((one) => one.routes)).keys()]
    const missing = known.filter((name) => !name.startsWith('OPTIONS') && !examples[name] && !WITHOUT.has(name))
    assert.deepEqual(missing, [], 'routes without an example in this file')
  })

  test('the check finds bad plans', async () => {
    const explain = async (text: string) => planOf((await home.sql.unsafe(PREFIX + text))[0]!)
    const bad = {
      'Seq Scan': 'select * from traffic',
      'a sort of a whole table':
        'select * from (select * from pod order by pod_namespace, pod_name offset 0) p order by node_name',
      'walked from end to end': "select count(*) from pod_syscalls where pod_name || '' = 'x'",
      'walked through for a few':
        "select * from traffic where peer_name = 'x' order by time_stamp desc, uuid desc limit 1",
      'an index walked':
        "select uuid from traffic where traffic_type = 'INGRESS' and decision = 'ALLOW' and upper(pod_ip) = 'x'",
      'cannot be seen through':
        "select * from pod_at_address('10.0.0.1', now()::timestamp + random() * interval '1 s') p",
    }
    await home.sql.begin(async (sql) => {
      for (const [what, text] of Object.entries(bad)) {
        await sql.unsafe(`set local enable_seqscan = ${what === 'Seq Scan' ? 'on' : 'off'}`)
        const [row] = await sql.unsafe(PREFIX + text)
        assert.throws(() => assertGood(planOf(row!), {}, text), new RegExp(what))
      }
    })
    assertGood(
      await explain('select * from traffic order by time_stamp desc, uuid desc limit 10'),
      { isOrdered: true },
      '',
    )
  })
})
