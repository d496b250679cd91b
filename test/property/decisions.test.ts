/**
 * Random decisions over random stores: nothing else of any answer changes, and what is shown is what a naive model of
 * docs/contract.md#decisions says.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startApp, TOKENS } from '../support/app.ts'
import { decision, put, READ, refresh, SUPPLYCHAIN } from '../support/decisions.ts'
import { depth } from '../support/depth.ts'
import { container, digestOf, replica } from '../support/images.ts'
import { finding, storeFindings } from '../support/supply-chain.ts'

const app = await startApp(TOKENS)
const RUNS = depth(5, 500)

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

// ---- The story ------------------------------------------------------------------------------------------------------

const IMAGES = [0, 1, 2]
const NAMESPACES = ['a', 'b']
const NAMES = ['web', 'api']
const VULNS = ['CVE', 'GHSA', 'PYSEC']
/** Packages of findings: name, version and package URL. */
const PACKAGES = [
  ['curl', '8', 'pkg:deb/debian/curl@8?arch=amd64&distro=debian-12'],
  ['zlib', '1', null],
  ['lodash', '4', 'pkg:npm/lodash@4'],
  ['lodash', '5', 'pkg:npm/lodash@5'],
] as const
/** What decisions name, and the packages that have it. */
const PARTS: readonly (readonly [string | null, readonly number[]])[] = [
  [null, [0, 1, 2, 3]],
  ['curl', [0]],
  ['zlib', [1]],
  ['lodash', [2, 3]],
  ['pkg:deb/debian/curl', [0]],
  ['pkg:deb/debian/curl@8?arch=amd64', [0]],
  ['pkg:deb/debian/curl@8?arch=arm64', []],
  ['pkg:npm/lodash', [2, 3]],
  ['pkg:npm/lodash@5', [3]],
  ['pkg:deb/debian/zlib', []],
]
const WORDS = ['accepted', 'not_affected', 'will_not_fix', 'fixed', 'affected', 'under_investigation'] as const
const SETTLED: readonly string[] = WORDS.slice(0, 4)

const place = fc.record({ namespace: fc.constantFrom(...NAMESPACES), name: fc.constantFrom(...NAMES) })
const scope = fc.oneof(
  fc.constant({ type: 'all' as const }),
  fc.record({ type: fc.constant('namespace' as const), namespace: fc.constantFrom(...NAMESPACES, 'c') }),
  fc.record({
    type: fc.constant('workload' as const),
    namespace: fc.constantFrom(...NAMESPACES),
    name: fc.constantFrom(...NAMES, 'gone'),
  }),
  // 3 is the index that image 1 is a platform of.
  fc.record({ type: fc.constant('image' as const), image: fc.constantFrom(...IMAGES, 3) }),
  // Images 0 and 1 have one repository, image 2 has another.
  fc.record({ type: fc.constant('repository' as const), repository: fc.constantFrom(0, 1) }),
)
type Scope = typeof scope extends fc.Arbitrary<infer T> ? T : never

const step = fc.record({
  vuln: fc.nat(VULNS.length - 1),
  /** The id that it is decided under: its own, or an alias; in some case. */
  spelling: fc.nat(2),
  scope,
  part: fc.nat(PARTS.length - 1),
  word: fc.option(fc.constantFrom(...WORDS), { nil: null, freq: 8 }),
  /** In a document, some of them with an old time. */
  document: fc.constantFrom('no', 'no', 'no', 'now', 'old'),
  expires: fc.nat(5).map((n) => n === 0),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const story = fc.record({
  runs: fc.uniqueArray(fc.record({ ...{ place, image: fc.constantFrom(...IMAGES) } }), {
    ...{ minLength: 1, maxLength: 6, selector: ({ place, image }) => `${place.namespace} ${place.name} ${image}` },
  }),
  findings: fc.uniqueArray(
    fc.record({
      image: fc.constantFrom(...IMAGES),
      vuln: fc.nat(VULNS.length - 1),
      package: fc.nat(PACKAGES.length - 1),
    }),
    { minLength: 1, maxLength: 14, selector: (one) => `${one.image} ${one.vuln} ${one.package}` },
  ),
  steps: fc.array(step, { minLength: 1, maxLength: 14 }),
})
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never

// ---- The model ------------------------------------------------------------------------------------------------------

interface Made extends Step {
  readonly why: string
  /** The later, the larger. */
  readonly time: readonly [number, number]
}

const RANK = { workload: 0, image: 1, repository: 1, namespace: 2, all: 3 } as const

/** The decisions that hold after the steps: a put replaces one of the same place and part. */
function holding(steps: readonly Step[]): Made[] {
  let made: Made[] = []
  for (const [n, one] of steps.entries()) {
    const key = (of: Step) => JSON.stringify([of.vuln, of.scope, of.part])
    if (one.document === 'no') made = made.filter((other) => other.document !== 'no' || key(other) !== key(one))
    if (one.word !== null) made.push({ ...one, why: `d${n}`, time: [one.document === 'old' ? 0 : 1, n] })
  }
  return made
}

const settles = ({ word }: Made) => Number(SETTLED.includes(word!))
/** Old documents have one time, of which those come first that leave work. */
const inOrder = (a: Made, b: Made) =>
  RANK[a.scope.type] - RANK[b.scope.type] ||
  b.time[0] - a.time[0] ||
  (a.time[0] === 0 ? settles(a) - settles(b) : 0) ||
  b.time[1] - a.time[1]

function isAbout(one: Scope, image: number, at: { namespace: string; name: string } | null): boolean {
  switch (one.type) {
    case 'all':
      return true
    case 'image':
      return one.image === image || (one.image === 3 && image === 1)
    case 'repository':
      return one.repository === (image === 2 ? 1 : 0)
    case 'namespace':
      return at !== null && at.namespace === one.namespace
    default:
      return at !== null && at.namespace === one.namespace && at.name === one.name
  }
}

type Finding = Story['findings'][number]

/** What a finding shows: the reason of its decision, and whether it is decided everywhere. */
function shownOf(finding: Finding, made: readonly Made[], { runs }: Story): [string | null, boolean] {
  const places = runs.filter(({ image }) => image === finding.image).map((one) => one.place)
  // The repository of an image that no container has is not known.
  const isKnown = ({ type }: Scope) => type !== 'repository' || places.length > 0
  const here = made
    .filter(
      ({ vuln, part, scope }) => vuln === finding.vuln && PARTS[part]![1].includes(finding.package) && isKnown(scope),
    )
    .sort(inOrder)
  const first = here.find((one) => [null, ...places].some((at) => isAbout(one.scope, finding.image, at)))
  const isSettled = (at: (typeof places)[number] | null) => {
    const best = here.find((one) => isAbout(one.scope, finding.image, at))
    return best !== undefined && SETTLED.includes(best.word!)
  }
  return [first?.why ?? null, places.length === 0 ? isSettled(null) : places.every(isSettled)]
}

/** The number of workloads in which all findings of a vulnerability are decided. */
function decidedWorkloads(vuln: number, namespace: string | null, made: readonly Made[], story: Story): number {
  const workloads = new Map<string, Story['runs']>()
  for (const one of story.runs)
    if (namespace === null || one.place.namespace === namespace) {
      const key = `${one.place.namespace} ${one.place.name}`
      workloads.set(key, [...(workloads.get(key) ?? []), one])
    }
  return [...workloads.values()].filter((runs) => {
    const inside = runs.flatMap(({ place, image }) =>
      story.findings.filter((one) => one.vuln === vuln && one.image === image).map((one) => ({ one, place })),
    )
    return (
      inside.length > 0 &&
      inside.every(({ one, place }) => {
        const best = made
          .filter(
            ({ vuln: of, part, scope }) =>
              of === vuln && PARTS[part]![1].includes(one.package) && isAbout(scope, one.image, place),
          )
          .sort(inOrder)[0]
        return best !== undefined && SETTLED.includes(best.word!)
      })
    )
  }).length
}

// ---- The broker -----------------------------------------------------------------------------------------------------

let cases = 0

class Told {
  readonly #run = ++cases
  readonly digests = [...IMAGES, 3].map((n) => digestOf(`decisions-${this.#run}-${n}`))
  readonly ids = VULNS.map((name) => `${name}-${this.#run}-1`)
  readonly namespace = (name: string) => `${name}-${this.#run}`
  readonly #repository = (n: number) => `registry.test/${this.#run}/repo-${n}`

  async store({ runs, findings }: Story): Promise<void> {
    for (const { place, image } of runs) {
      const one = container(`c${image}`, this.digests[image]!, { repository: this.#repository(image === 2 ? 1 : 0) })
      const pod = replica(this.namespace(place.namespace), [one], { workload_name: place.name })
      const answer = await app.post('/pod/spec', pod, { token: TOKENS.BROKER_TOKEN_INGEST })
      assert.equal(answer.status, 200, answer.text)
    }
    for (const image of IMAGES) {
      const rows = findings
        .filter((one) => one.image === image)
        .map((one) => {
          const [package_name, installed_version, package_purl] = PACKAGES[one.package]!
          return finding(this.ids[one.vuln]!, {
            ...{ package_name, installed_version, package_purl },
            aliases: one.vuln === 0 ? [`ALIAS-${this.#run}`] : [],
          })
        })
      const header = image === 1 ? { index_digest: this.digests[3] } : {}
      if (rows.length > 0) await storeFindings(app, this.digests[image]!, 'registry', rows, header)
    }
  }

  async decide(one: Step, n: number, hasAlias: boolean): Promise<void> {
    const own = this.ids[one.vuln]!
    const id = [own, own.toLowerCase(), one.vuln === 0 && hasAlias ? `alias-${this.#run}` : own][one.spelling]!
    const why = `d${n}`
    const part = PARTS[one.part]![0]
    if (one.document === 'no') {
      const scope = this.#scope(one.scope)
      const justification = one.word === 'not_affected' ? 'component_not_present' : null
      const answer = await put(app, id, decision({ scope, package: part, decision: one.word, justification, why }))
      assert.equal(answer.status, 200, answer.text)
      return
    }
    const answer = await app.post('/vex', this.#document(one, id, why, part), { token: SUPPLYCHAIN })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(answer.json.ignored, 0, answer.text)
  }

  #scope(one: Scope): Json {
    if (one.type === 'namespace') return { ...one, namespace: this.namespace(one.namespace) }
    if (one.type === 'workload') return { ...one, namespace: this.namespace(one.namespace), kind: 'Deployment' }
    if (one.type === 'image') return { type: 'image', digest: this.digests[one.image] }
    if (one.type === 'repository') return { type: 'repository', repository: this.#repository(one.repository) }
    return one
  }

  #document({ scope, word, document }: Step, id: string, why: string, part: string | null): Json {
    const product =
      scope.type === 'image'
        ? { '@id': this.digests[scope.image] }
        : scope.type === 'repository'
          ? { '@id': `pkg:oci/repo-${scope.repository}?repository_url=${this.#repository(scope.repository)}` }
          : { '@id': part }
    const subcomponents = scope.type === 'all' || part === null ? undefined : [{ '@id': part }]
    return {
      '@context': 'https://openvex.dev/ns/v0.2.0',
      '@id': `urn:case:${this.#run}:${why}`,
      ...{
        author: 'vendor',
        timestamp: document === 'old' ? '2020-01-01T00:00:00Z' : '2999-01-01T00:00:00Z',
        version: 1,
      },
      statements: [
        {
          vulnerability: { name: id },
          ...{ status: word, justification: word === 'not_affected' ? 'component_not_present' : undefined },
          ...{ impact_statement: why, products: [{ ...product, subcomponents }] },
        },
      ],
    }
  }

  async answers({ findings }: Story): Promise<Json[]> {
    const paths = [
      ...this.digests.flatMap((digest) => [
        `/images/${digest}/vulnerabilities`,
        `/images/${digest}/vulnerabilities?tier=P1&fixable=false`,
      ]),
      ...NAMESPACES.map((name) => `/vulnerabilities?namespace=${this.namespace(name)}`),
      ...this.ids.map((id) => `/vulnerabilities?vuln_id=${id}`),
      ...[...new Set(findings.map(({ vuln }) => vuln))].map((vuln) => `/vulnerabilities/${this.ids[vuln]}/exposure`),
    ]
    const answers = []
    for (const path of paths) {
      const { text } = await app.get(path, { token: READ })
      answers.push(text.startsWith('{') ? JSON.parse(text) : text)
    }
    return answers
  }
}

const NEW = ['decision', 'decided', 'decidedWorkloads', 'staleSeconds', 'computedAt']
const withoutNew = (answers: Json) => JSON.stringify(answers, (key, value) => (NEW.includes(key) ? undefined : value))

/** A document has the words of OpenVEX, and no decision of a place; one for the cluster is about a package URL. */
function possible(one: Step): Step {
  const isOfVex =
    one.word !== null &&
    !['accepted', 'will_not_fix'].includes(one.word) &&
    (['image', 'repository'].includes(one.scope.type) ||
      (one.scope.type === 'all' && PARTS[one.part]![0]?.startsWith('pkg:')))
  return isOfVex ? one : { ...one, document: 'no' }
}

test('decisions change nothing that is known, and are shown as the model says', async () => {
  await fc.assert(
    fc.asyncProperty(story, async (drawn) => {
      const told = new Told()
      const one = { ...drawn, steps: drawn.steps.map(possible) }
      const hasAlias = one.findings.some(({ vuln }) => vuln === 0)
      await app.sql`truncate vuln_decision, vex_document, vex_statement, cve_decided`
      await told.store(one)
      await refresh(app)
      const before = withoutNew(await told.answers(one))
      for (const [n, each] of one.steps.entries()) await told.decide(each, n, hasAlias)

      const made = holding(one.steps)
      await assertShown(told, one, made)
      await assertCounted(told, one, made)
      assert.equal(withoutNew(await told.answers(one)), before)

      // Some of them end by time.
      const over = made.filter(({ expires }) => expires).map(({ why }) => why)
      await app.sql`update vuln_decision set holds_until = current_date - 2 where ended_at is null and reason = any (string_to_array(${over.join()}, ','))`
      const left = made.filter(({ expires }) => !expires)
      await assertShown(told, one, left)
      await refresh(app)
      await assertCounted(told, one, left)
      assert.equal(withoutNew(await told.answers(one)), before)
    }),
    { numRuns: RUNS },
  )
})

async function assertShown(told: Told, one: Story, made: readonly Made[]): Promise<void> {
  for (const image of IMAGES) {
    const { text, json } = await app.get(`/images/${told.digests[image]}/vulnerabilities?limit=500`, { token: READ })
    const shown = json.items.map((item: Json) => [
      ...[item.id, item.package.name, item.installedVersion, item.decision?.why ?? null, item.decided],
    ])
    const expected = one.findings
      .filter((each) => each.image === image)
      .map((each) => {
        const [name, version] = PACKAGES[each.package]!
        return [told.ids[each.vuln], name, version, ...shownOf(each, made, one)]
      })
    assert.deepEqual(shown.sort(), expected.sort(), text)
  }
}

async function assertCounted(told: Told, one: Story, made: readonly Made[]): Promise<void> {
  for (const namespace of [null, ...NAMESPACES])
    for (const [vuln, id] of told.ids.entries()) {
      const scope = namespace === null ? '' : `&namespace=${told.namespace(namespace)}`
      const { json } = await app.get(`/vulnerabilities?vuln_id=${id}${scope}`, { token: READ })
      const expected = decidedWorkloads(vuln, namespace, made, one)
      assert.equal(json.items[0]?.decidedWorkloads ?? 0, expected, `${id} in ${namespace}`)
    }
}
