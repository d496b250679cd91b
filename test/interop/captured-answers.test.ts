/**
 * Answers about use and tiers have the keys, the types and the order of those that clients of this ecosystem were made
 * for, and the values that follow from what was posted (docs/contract.md#in-use, docs/contract.md#tiers). The shapes
 * are facts about captured answers; the cluster is ours.
 */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { CVES, DIGESTS, tellBakery } from './bakery.ts'
import { assertShape, CAPABILITIES, EXPOSURE, FINDINGS, LIST } from './shapes.ts'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

const app = await startApp({ ...TOKENS, WIRE_NAMES: 'kguardian' })
const token = TOKENS.BROKER_TOKEN_READ
before(() => tellBakery(app))

async function get(path: string): Promise<Json> {
  const answer = await app.get(path, { token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

const list = async (query = '') => {
  const page = await get(`/vulnerabilities${query}`)
  assertShape(page, LIST)
  return page
}
const ids = async (query: string) => (await list(query)).items.map(({ id }: Json) => id)
const findings = async (digest: string, query = '') => {
  const page = await get(`/images/${digest}/vulnerabilities${query}`)
  assertShape(page, FINDINGS)
  return page
}
const judged = (items: Json[]) =>
  items.map(({ id, inUseState, inUseDetail, tier, tierFactors }) =>
    [id, inUseState, inUseDetail.reason, inUseDetail.coverage, tier, ...tierFactors].join(' '),
  )

test('findings of an index, by two scanners: executed, interpreted, loaded by a soname, not observed', async () => {
  const page = await findings(DIGESTS.shop)
  assert.deepEqual(judged(page.items), [
    `${CVES.tls} executed  file P0 in_use:executed kev epss>=0.1 severity:critical exposed`,
    `${CVES.web} unknown language_package interpreted P1 in_use:unknown severity:high exposed`,
    `${CVES.parser} unknown language_package interpreted P1 in_use:unknown severity:high exposed`,
    `${CVES.zip} loaded  file P2 in_use:loaded severity:medium exposed no_fix`,
    `${CVES.shell} installed_not_observed  file Background in_use:installed_not_observed severity:low exposed`,
  ])
  assert.deepEqual(
    page.items.map(({ inUse }: Json) => inUse),
    [true, null, null, true, false],
  )
  assert.deepEqual(
    page.items.map(({ inUseDetail }: Json) => [inUseDetail.containers, inUseDetail.windowHours]),
    page.items.map(() => [1, 24]),
  )
  assert.deepEqual(
    page.items.map(({ inUseDetail }: Json) => inUseDetail.observedSince === null),
    [false, true, true, false, false],
  )
  assert.deepEqual(page.items[0].sources, ['grype', 'trivy-operator'])
  assert.deepEqual(
    page.reports.map(({ source, join, digestKind }: Json) => [source, join, digestKind]),
    [
      ['grype', 'platform_manifest', 'index'],
      ['trivy-operator', 'platform_manifest', 'index'],
    ],
  )
})

test('findings with a filter of tiers or states keep the order of severity, also over pages', async () => {
  const of = async (query: string) => (await findings(DIGESTS.shop, query)).items.map(({ id }: Json) => id)
  assert.deepEqual(await of('?tier=P0,P1'), [CVES.tls, CVES.web, CVES.parser])
  assert.deepEqual(await of('?tier=background'), [CVES.shell])
  assert.deepEqual(await of('?in_use=executed,loaded'), [CVES.tls, CVES.zip])
  const first = await findings(DIGESTS.shop, '?tier=P0,P1&limit=2')
  assert.deepEqual(await of(`?tier=P0,P1&limit=2&after=${encodeURIComponent(first.nextAfter)}`), [CVES.parser])
  for (const [image, tiers] of [
    ['till', [CVES.tls]],
    ['bill', [CVES.tls]],
    ['boards', [CVES.net]],
    ['meters', [CVES.net]],
    ['probe', []],
    ['recipes', []],
  ] as const)
    assert.deepEqual(
      (await findings(DIGESTS[image], '?tier=P0,P1')).items.map(({ id }: Json) => id),
      tiers,
      image,
    )
})

test('findings of containers without libraries, without data, attached late, and with lost events', async () => {
  const of = async (image: keyof typeof DIGESTS) => judged((await findings(DIGESTS[image])).items)
  assert.deepEqual(await of('till'), [
    `${CVES.tls} unknown libraries_not_tracked file P1 in_use:unknown kev epss>=0.1 severity:critical internal`,
    `${CVES.client} unknown libraries_not_tracked file P2 in_use:unknown severity:high internal no_fix`,
  ])
  assert.deepEqual(await of('bill'), [
    `${CVES.tls} unknown no_runtime_data file P0 in_use:unknown kev epss>=0.1 severity:critical exposure:unknown`,
  ])
  // A list of modules is no program (`gomod`): its files tell nothing, unlike in captured answers, which say `file`.
  assert.deepEqual(await of('boards'), [
    `${CVES.net} unknown language_package interpreted P1 in_use:unknown severity:high exposed`,
    `${CVES.zip} unknown no_package_files file P2 in_use:unknown severity:medium exposed no_fix`,
  ])
  // Only a node reaches it, which makes no tier more urgent.
  assert.deepEqual(await of('meters'), [
    `${CVES.net} unknown capture_gap interpreted P1 in_use:unknown severity:high exposed:node_only`,
  ])
  assert.deepEqual([await of('probe'), await of('recipes')], [[], []])
  assert.deepEqual((await findings(DIGESTS.probe)).reports, [])
  assert.deepEqual((await findings(DIGESTS.recipes)).reports[0].itemCount, 0)
})

test('the list of the cluster: tiers first, then severity and id, with counts of workloads', async () => {
  const { items, order } = await list()
  assert.equal(order, 'tier')
  assert.deepEqual(
    items.map((one: Json) =>
      [
        ...[one.id, one.tier, one.inUseState, one.images, one.workloads, one.runningWorkloads, one.namespaces],
        ...[one.executedWorkloads, one.loadedWorkloads, one.unknownWorkloads, one.notObservedWorkloads],
        ...[one.exposedWorkloads, one.weakestJoin],
      ].join(' '),
    ),
    [
      `${CVES.tls} P0 executed 3 3 2 1 1 0 2 0 1 platform_manifest`,
      `${CVES.web} P1 unknown 1 1 1 1 0 0 1 0 1 platform_manifest`,
      `${CVES.net} P1 unknown 2 2 2 1 0 0 2 0 1 workload_tag`,
      `${CVES.parser} P1 unknown 1 1 1 1 0 0 1 0 1 platform_manifest`,
      `${CVES.client} P2 unknown 1 1 1 1 0 0 1 0 0 image_id`,
      `${CVES.zip} P2 loaded 2 2 2 2 0 1 1 0 2 platform_manifest`,
      `${CVES.shell} Background installed_not_observed 1 1 1 1 0 0 0 1 1 platform_manifest`,
    ],
  )
})

test('filters of the list, and its pages', async () => {
  assert.deepEqual(await ids('?tier=P0'), [CVES.tls])
  assert.deepEqual(await ids('?in_use=loaded,installed_not_observed'), [CVES.zip, CVES.shell])
  assert.deepEqual(await ids('?severity=CRITICAL'), [CVES.tls])
  assert.deepEqual(await ids('?fixable=true'), [CVES.tls, CVES.web, CVES.net, CVES.parser, CVES.shell])
  assert.deepEqual(await ids('?running=true'), await ids(''))
  assert.deepEqual(await ids('?namespace=dashboards'), [CVES.net, CVES.zip])
  assert.deepEqual(await ids('?namespace=kitchen'), [])
  assert.deepEqual(await ids('?kev=true'), [CVES.tls])
  assert.deepEqual(await ids('?kev=false'), [CVES.web, CVES.parser])
  const pages: string[] = []
  for (let after: string | null = ''; after !== null; ) {
    const { items, nextAfter }: Json = await list(`?limit=2${after && `&after=${encodeURIComponent(after)}`}`)
    pages.push(...items.map(({ id }: Json) => id))
    after = nextAfter
  }
  assert.deepEqual(pages, await ids(''))
})

test('exposure of each vulnerability, and of one that no image has', async () => {
  const of = async (cve: keyof typeof CVES) => {
    const answer = await get(`/vulnerabilities/${CVES[cve]}/exposure`)
    assertShape(answer, EXPOSURE)
    return [
      answer.inUseState,
      ...answer.workloads.map(({ name, inUseState, network, join, running }: Json) =>
        [name, inUseState, network.exposed, network.exposedVia.join('+'), join, running].join(' '),
      ),
    ]
  }
  const everyone = 'true other_namespace+unattributed+public_ip'
  assert.deepEqual(await of('tls'), [
    'executed',
    `shop executed ${everyone} platform_manifest true`,
    'till unknown false  image_id true',
    'bill unknown   image_id false',
  ])
  assert.deepEqual(await of('web'), ['unknown', `shop unknown ${everyone} platform_manifest true`])
  assert.deepEqual(await of('zip'), [
    'loaded',
    `shop loaded ${everyone} platform_manifest true`,
    'boards unknown true other_namespace image_id true',
  ])
  assert.deepEqual(await of('shell'), [
    'installed_not_observed',
    `shop installed_not_observed ${everyone} platform_manifest true`,
  ])
  assert.deepEqual(await of('client'), ['unknown', 'till unknown false  image_id true'])
  assert.deepEqual(await of('net'), [
    'unknown',
    'boards unknown true other_namespace image_id true',
    'meters unknown true node workload_tag true',
  ])
  assert.deepEqual(await of('parser'), ['unknown', `shop unknown ${everyone} platform_manifest true`])
  const nobody = await app.get('/vulnerabilities/CVE-2098-9999/exposure', { token })
  assert.equal(nobody.status, 404)
  assert.match(nobody.headers.get('content-type')!, /^text\/plain/)
})

test('capabilities: enough evidence, libraries that are not tracked, a late start, and no data', async () => {
  const of = async (path: string) => {
    const answer = await get(`/workloads/${path}/capabilities`)
    assertShape(answer, CAPABILITIES)
    assert.deepEqual([answer.windowHours, answer.containers.length], [168, 1])
    return answer.containers[0]
  }
  const names = (seen: Json[]) => seen.map(({ capability, count }) => `${capability} ${count}`)
  const shop = await of('bakery/Deployment/shop')
  assert.deepEqual([shop.evidence, shop.reason, shop.digests], ['sufficient', null, [DIGESTS.shop]])
  assert.deepEqual(
    [names(shop.used), names(shop.denied), names(shop.probed)],
    [['CHOWN 1', 'NET_BIND_SERVICE 8'], ['NET_RAW 2'], ['SYS_ADMIN 18']],
  )
  const { probedOmitted, ...recommendation } = shop.recommendation
  assert.deepEqual(recommendation, {
    ...{ drop: ['ALL'], add: ['CHOWN', 'NET_BIND_SERVICE'], probedKept: [] },
    requires: { allowPrivilegeEscalation: false },
  })
  assert.deepEqual(
    probedOmitted.map((one: Json) => [one.capability, typeof one.reason]),
    [['SYS_ADMIN', 'string']],
  )
  for (const [path, reason, isWatched, used] of [
    ['bakery/Deployment/till', 'libraries_not_tracked', true, []],
    ['dashboards/Deployment/boards', 'capabilities_not_seen_since_start', true, ['SETUID 1']],
    ['dashboards/DaemonSet/probe', 'no_runtime_data', false, []],
  ] as const) {
    const one = await of(path)
    assert.deepEqual(
      [one.evidence, one.reason, one.recommendation, one.unusedAdded],
      ['insufficient', reason, null, []],
    )
    assert.deepEqual([one.observedSince !== null, names(one.used)], [isWatched, used], path)
  }
})
