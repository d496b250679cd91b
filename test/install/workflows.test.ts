/** Files that GitHub reads: workflows, Renovate, issue templates, owners. In CI actionlint checks the workflows too. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import { PLACEHOLDER, releaseChart } from '../../scripts/release/chart.ts'
import { releaseKrew } from '../../scripts/release/krew.ts'

// biome-ignore lint/suspicious/noExplicitAny: a document is what the test says it is.
type Json = any

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const { scripts, engines } = JSON.parse(read('package.json'))
const FOLDER = '.github/workflows'
const NAMES = ['ci.yml', 'release.yml']
const workflow = (name: string): Json => load(read(`${FOLDER}/${name}`))
const jobsOf = (name: string): [string, Json][] => Object.entries(workflow(name).jobs)
const stepsOf = (name: string): Json[] => jobsOf(name).flatMap(([, { steps = [] }]) => steps)

test('there are workflows for changes and for releases, and no others', () => {
  assert.deepEqual(readdirSync(join(ROOT, FOLDER)).sort(), NAMES)
})

for (const name of NAMES) {
  test(`${name}: every action is pinned to a commit, with its version in a comment`, () => {
    const uses = [...read(`${FOLDER}/${name}`).matchAll(/uses: (\S+)(.*)$/gm)].filter(
      ([, action]) => !action!.startsWith('./'),
    )
    assert.ok(uses.length > 0)
    for (const [, action, comment] of uses) {
      assert.match(action!, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/)
      assert.match(comment!, /^ # v\d+\.\d+\.\d+$/, action)
    }
  })

  test(`${name}: only the release job may write contents, no checkout keeps the token, and each job has a time limit`, () => {
    const { permissions, jobs } = workflow(name)
    assert.deepEqual(permissions, {})
    for (const [job, { permissions: own, uses, 'timeout-minutes': minutes }] of Object.entries<Json>(jobs)) {
      assert.equal(own.contents === 'write', job === 'release', job)
      if (name === 'ci.yml') assert.deepEqual(own, { contents: 'read' }, job)
      if (uses === undefined) assert.ok(minutes > 0, job)
    }
    for (const step of stepsOf(name).filter((one) => one.uses?.startsWith('actions/checkout@')))
      assert.equal(step.with['persist-credentials'], false)
  })

  test(`${name}: it runs only scripts of package.json and files of this repository`, () => {
    const run = stepsOf(name)
      .map((step) => step.run ?? '')
      .join('\n')
    for (const [, script] of run.matchAll(/npm (?:run )?(?:--silent )?([\w:-]+)/g))
      assert.ok(script === 'ci' || script! in scripts, script)
    for (const [, path] of run.matchAll(/((?:\.ci|scripts|test|wrangler-free-deploy)\/[\w./-]+)/g))
      assert.ok(existsSync(join(ROOT, path!)), path)
    // The shell would run the content of an expression.
    assert.doesNotMatch(run, /\$\{\{/)
  })
}

test('the tests run on the oldest and newest documented Node and PostgreSQL, and .ci/run on each of these Nodes', () => {
  const { test: tests, all } = workflow('ci.yml').jobs
  const { node, postgres } = tests.strategy.matrix
  assert.deepEqual(
    [node, postgres],
    [
      [20, 22, 24],
      [15, 18],
    ],
  )
  // Node reads `.env` files since 20.12.
  assert.equal(engines.node, `>=${node[0]}.12`)
  assert.match(read('README.md'), new RegExp(`^Node ${node[0]}\\.12 or newer is all it needs`, 'm'))
  assert.match(read('docs/install.md'), new RegExp(`with Node ${node[0]} or ${node[1]} \\(${node[2]} to \\d+ run it`))
  assert.match(read('docs/operations.md'), new RegExp(`^PostgreSQL ${postgres[0]} to ${postgres[1]}\\.`, 'm'))
  assert.deepEqual(all.strategy.matrix.node, node)
  const [, image] = /NODE_IMAGE=node:(\d+)/.exec(read('Dockerfile'))!
  assert.ok(node.includes(Number(image)))
  const run = (job: Json) => job.steps.map((step: Json) => step.run ?? '').join('\n')
  assert.match(run(tests), /^npm ci .*\nnpm test$/m)
  assert.match(run(all), /^\.ci\/run$/m)
})

test('a release is a tag with the version, and needs everything that CI runs', () => {
  const { on, jobs } = workflow('release.yml')
  assert.deepEqual(on.push, { tags: ['v[0-9]*'] })
  assert.equal(jobs.ci.uses, './.github/workflows/ci.yml')
  assert.ok('workflow_call' in workflow('ci.yml').on)
  assert.deepEqual([jobs.image.needs, jobs.chart.needs, jobs.release.needs], ['ci', 'image', ['image', 'chart']])
  assert.match(read(`${FOLDER}/release.yml`), /v\$\(node --print "require\('\.\/package\.json'\)\.version"\)/)
})

test('the image is built for both architectures, with SBOM and provenance, and is signed by its digest', () => {
  const { steps, permissions } = workflow('release.yml').jobs.image
  const build = steps.find(({ uses }: Json) => uses?.startsWith('docker/build-push-action@')).with
  assert.deepEqual(
    [build.platforms, build.push, build.sbom, build.provenance],
    ['linux/amd64,linux/arm64', true, true, 'mode=max'],
  )
  const args = [...build['build-args'].matchAll(/^(\w+)=/gm)].map(([, name]) => name)
  assert.deepEqual(
    args,
    [...read('Dockerfile').matchAll(/^ARG (?!NODE_IMAGE)(\w+)=/gm)].map(([, name]) => name),
  )
  assert.ok(steps.some(({ run }: Json) => /^cosign sign --yes "\$IMAGE@\$DIGEST"$/m.test(run ?? '')))
  assert.deepEqual(permissions, { contents: 'read', packages: 'write', 'id-token': 'write' })
})

test('the chart is pushed, signed by its digest and has provenance; release files are signed too', () => {
  const { chart, release } = workflow('release.yml').jobs
  const run = (job: Json) => job.steps.map((step: Json) => step.run ?? '').join('\n')
  assert.match(run(chart), /^helm push /m)
  assert.match(run(chart), /^cosign sign --yes "\$CHART@\$digest"$/m)
  assert.ok(chart.steps.some(({ uses }: Json) => uses?.startsWith('actions/attest-build-provenance@')))
  assert.match(run(release), /^npm run sbom /m)
  assert.match(run(release), /cosign sign-blob --yes --bundle/)
  for (const name of ['kubectl-telemetry_broker.tar.gz', 'telemetry-broker.yaml'])
    assert.match(run(release), new RegExp(`^gh release create (.*\\\\\n)*.*\\b${name.replace('.', '\\.')}\\b`, 'm'))
  assert.match(run(release), /^gh release create /m)
})

test('a release uses the same helm as the checks of the chart', () => {
  const [, version] = /^helm_version=(\S+)$/m.exec(read('scripts/chart-check.sh'))!
  const setup = stepsOf('release.yml').find(({ uses }) => uses?.startsWith('azure/setup-helm@'))
  assert.equal(setup.with.version, version)
})

test('the chart of a release names its image and repository', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'release-'))
  t.after(() => rmSync(folder, { recursive: true }))
  releaseChart({
    folder,
    image: 'ghcr.io/team/cluster-telemetry-broker',
    address: 'https://github.com/team/repository',
  })
  const chart = load(readFileSync(join(folder, 'Chart.yaml'), 'utf8')) as Json
  assert.deepEqual(
    [chart.home, chart.sources],
    ['https://github.com/team/repository', ['https://github.com/team/repository']],
  )
  const values = load(readFileSync(join(folder, 'values.yaml'), 'utf8')) as Json
  const own = load(read('wrangler-free-deploy/chart/values.yaml')) as Json
  assert.deepEqual(values, { ...own, image: { ...own.image, repository: 'ghcr.io/team/cluster-telemetry-broker' } })
  assert.ok(read('wrangler-free-deploy/chart/Chart.yaml').includes(PLACEHOLDER))
  if (process.env.HELM === undefined) return
  const { status, stderr } = spawnSync(process.env.HELM, ['template', 'x', folder, '--kube-version', '1.34.0'], {
    encoding: 'utf8',
  })
  assert.deepEqual([status, stderr], [0, ''])
})

test('the plugin of a release has a manifest that krew takes, with its version, address and digest', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'release-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const files = ['ctb.mjs', 'THIRD_PARTY_LICENCES.txt'].map((name) => join(folder, name))
  for (const file of files) writeFileSync(file, `the content of ${file}`)
  releaseKrew({ folder, address: 'https://github.com/team/repository', files: [...files, join(ROOT, 'LICENSE')] })
  const archive = join(folder, 'kubectl-telemetry_broker.tar.gz')
  const { apiVersion, kind, metadata, spec } = load(readFileSync(join(folder, 'telemetry-broker.yaml'), 'utf8')) as Json
  assert.deepEqual(
    [apiVersion, kind, metadata],
    ['krew.googlecontainertools.github.com/v1alpha2', 'Plugin', { name: 'telemetry-broker' }],
  )
  const { version } = JSON.parse(read('package.json'))
  assert.deepEqual([spec.version, spec.homepage], [`v${version}`, 'https://github.com/team/repository'])
  // krew refuses a longer one, and one that ends with a period.
  assert.match(spec.shortDescription, /^.{1,49}[^.]$/)
  assert.ok(spec.description && spec.caveats)
  const [platform, ...others] = spec.platforms
  assert.deepEqual(others, [])
  assert.deepEqual(platform.selector.matchExpressions, [{ key: 'os', operator: 'In', values: ['linux', 'darwin'] }])
  assert.equal(
    platform.uri,
    `https://github.com/team/repository/releases/download/v${version}/kubectl-telemetry_broker.tar.gz`,
  )
  assert.equal(platform.sha256, createHash('sha256').update(readFileSync(archive)).digest('hex'))
  const packed = spawnSync('tar', ['-tzf', archive], { encoding: 'utf8' }).stdout.trim().split('\n')
  assert.deepEqual(platform.files.map(({ from }: Json) => from).sort(), packed.sort())
  assert.ok(platform.files.every(({ to }: Json) => to === '.'))
  assert.ok(packed.includes(platform.bin) && packed.includes('LICENSE'))
})

test('Renovate updates actions, packages, images, actionlint and helm, and keeps the major versions of Node', () => {
  const { extends: presets, enabledManagers, customManagers, packageRules } = JSON.parse(read('renovate.json'))
  for (const preset of ['config:recommended', 'helpers:pinGitHubActionDigests'])
    assert.ok(presets.includes(preset), preset)
  // Packages and images have managers that are on by default.
  assert.equal(enabledManagers, undefined)
  assert.ok(packageRules.every(({ enabled }: Json) => enabled !== false))
  const [{ managerFilePatterns, matchStrings }] = customManagers
  assert.deepEqual(managerFilePatterns, ['/^scripts/chart-check\\.sh$/', '/^\\.github/workflows/.*\\.yml$/'])
  const found = matchStrings.flatMap((text: string) => [
    ...`${read('scripts/chart-check.sh')}${NAMES.map((name) => read(`${FOLDER}/${name}`)).join('')}`.matchAll(
      new RegExp(text, 'g'),
    ),
  ])
  assert.deepEqual(found.map(({ groups }: Json) => groups.depName).sort(), [
    'github.com/rhysd/actionlint',
    'helm/helm',
    'helm/helm',
  ])
  const allowed = (name: string) =>
    packageRules.find(({ matchPackageNames }: Json) => matchPackageNames?.includes(name)).allowedVersions
  const [, major] = /NODE_IMAGE=node:(\d+)/.exec(read('Dockerfile'))!
  assert.equal(allowed('node'), `<${Number(major) + 1}`)
  assert.equal(allowed('@types/node'), `<${Number(/\d+/.exec(engines.node)) + 1}`)
})

test('all files have owners, and issue forms require what is needed to act on them', () => {
  assert.match(read('.github/CODEOWNERS'), /^\* +@[\w-]+\/[\w-]+$/m)
  for (const [name, needed] of [
    ['bug.yml', ['version', 'seen', 'expected', 'reproduce']],
    ['feature.yml', ['need', 'proposal']],
  ] as const) {
    const form = load(read(`.github/ISSUE_TEMPLATE/${name}`)) as Json
    assert.ok(form.name && form.description)
    const required = form.body.filter(({ validations }: Json) => validations?.required).map(({ id }: Json) => id)
    assert.deepEqual(required, needed)
    assert.match(JSON.stringify(form.body), /SECURITY\.md/)
  }
  assert.equal((load(read('.github/ISSUE_TEMPLATE/config.yml')) as Json).blank_issues_enabled, false)
})

test('.ci/run needs nothing outside the clone', () => {
  const [change, ...others] = [...read('.ci/run').matchAll(/^.*\.\.\/?.*$/gm)].map(([line]) => line)
  assert.deepEqual([change, others], ['cd "$(dirname "$0")/.."', []])
  for (const [, path] of read('.ci/run').matchAll(/((?:scripts|test)\/[\w./-]+)/g)) {
    assert.ok(existsSync(join(ROOT, path!)), path)
    if (!path!.endsWith('.test.ts')) assert.ok(statSync(join(ROOT, path!)).mode & 0o100, `${path} is executable`)
  }
  const suite = readdirSync(join(ROOT, 'test/conformance'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.mjs'),
  )
  assert.ok(suite.length > 10)
  for (const name of suite) {
    const file = join(ROOT, 'test/conformance', name)
    for (const [, target] of readFileSync(file, 'utf8').matchAll(/(?:from|import\() ?['"](\.[^'"]+)['"]/g)) {
      const path = resolve(dirname(file), target!)
      assert.ok(existsSync(path) && !relative(ROOT, path).startsWith('..'), `${name}: ${target}`)
    }
  }
})
