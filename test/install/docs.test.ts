/**
 * Runs docs/install.md and then docs/operations.md: the blocks marked `run`, in order, on real brokers and a real
 * PostgreSQL (`stand-in.ts` replaces Docker), and compares their output. Commands that cannot run here have their names
 * and values compared with the sources.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'
import { jobs } from '../../jobs/index.ts'
import { configTable, loadConfig } from '../../lib/config/index.ts'
import { SchemaTooNew } from '../../sql/migrate/errors.ts'
import { startApp } from '../support/app.ts'
import { flow, get, post } from '../support/broker.ts'
import { onlyFull } from '../support/depth.ts'
import { freePort } from '../support/free-port.ts'
import { container, newDigest, replica } from '../support/images.ts'
import { podPost, servicePost, wholePodPost } from '../support/records.ts'
import { startStub } from '../support/stub.ts'
import { until } from '../support/until.ts'
import { composeVariables, readCompose } from './compose.ts'
import { type Block, blocksOf, commandsOf } from './document.ts'
import { type Shell, startShell } from './shell.ts'
import { type StandIn, startStandIn } from './stand-in.ts'
import { findPrograms, startSystemPostgres } from './system-postgres.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CHART = 'wrangler-free-deploy/chart'
const pages = ['install.md', 'operations.md'].map((name) => ({
  name,
  text: readFileSync(join(ROOT, 'docs', name), 'utf8'),
}))
const page = pages.map(({ text }) => text).join('\n')
const blocks = pages.flatMap(({ name, text }) =>
  blocksOf(text).map((block) => ({ ...block, place: `${name}:${block.line}` })),
)
const run = blocks.filter(({ tags }) => tags.includes('run'))
const shown = blocks.filter(({ language, tags }) => language === 'sh' && !tags.includes('run'))
const [, oldestKubernetes] = /Kubernetes (\d+\.\d+) or newer/.exec(page)!
const PORTS = [9090, 9190, 8080]
/** Languages of files that test/faults/failover.test.ts uses. */
const FILES = ['haproxy', 'ini', 'properties', 'yaml']
const FLOWS = 200
const RUN_LIMIT_MS = 900_000

/** Returns a verdict for every flow. */
const evaluator = await startStub(({ body }) => {
  const { srcPodName } = body === '' ? { srcPodName: '' } : JSON.parse(body)
  const verdict = {
    policyNamespace: 'shop',
    policyName: `of-${srcPodName}`,
    policyUID: 'uid',
    direction: 'Egress',
    verdict: 'WouldDeny',
  }
  return { json: { results: [{ ...verdict, reason: 'no rule: "ü" \u2028' }] } }
})

describe('blocks that run', { timeout: RUN_LIMIT_MS, skip: onlyFull }, () => {
  const programs = findPrograms()
  const missing = programs === undefined ? 'this machine has no PostgreSQL with its client programs' : undefined
  let shell: Shell
  let standIn: StandIn
  let checkout: string
  const ports = new Map<number, number>()
  /** The number of the newest flow that the dump should contain. */
  let last = FLOWS
  const api = () => `http://127.0.0.1:${ports.get(9090)}`
  /** Posts as an agent, once tokens are configured. */
  const ingest = async (path: string, body: unknown) => {
    const token = /BROKER_TOKEN_INGEST=(\w+)/.exec(
      readFileSync(join(checkout, 'wrangler-free-deploy/.env'), 'utf8'),
    )![1]
    const answer = await post(`${api()}${path}`, body, {
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    })
    assert.equal(answer.status, 200, `${path}: ${answer.text}`)
    return answer
  }
  const read = async (path: string) => {
    const token = /BROKER_TOKEN_READ=(\w+)/.exec(readFileSync(join(checkout, 'wrangler-free-deploy/.env'), 'utf8'))![1]
    return get(`${api()}${path}`, { headers: { authorization: `Bearer ${token}` } })
  }

  before(async () => {
    if (missing) return
    const folder = mkdtempSync(join(tmpdir(), 'broker-docs-'))
    chmodSync(folder, 0o711)
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    checkout = join(folder, 'checkout')
    mkdirSync(join(checkout, 'wrangler-free-deploy'), { recursive: true })
    for (const port of PORTS) ports.set(port, await freePort())
    standIn = await startStandIn({
      folder,
      checkout,
      postgres: await startSystemPostgres(programs!, 'a-password-of-the-drill'),
      portOf: (port) => ports.get(port)!,
      environment: { EVALUATOR_URL: evaluator.url },
    })
    shell = startShell(checkout, standIn.env)
  })

  /** Data that a section needs, by its heading. */
  const arrange: Record<string, () => Promise<void>> = {
    'Backup and restore': async () => {
      // Current, so that the stale sweep does not mark these pods dead.
      const time_stamp = new Date().toISOString().slice(0, 19)
      for (let n = 1; n <= 20; n++)
        await ingest('/pod/spec', wholePodPost({ time_stamp, containers: [container(`c-${n}`, newDigest())] }))
      await ingest('/pod/spec', replica('shop', [container('web', newDigest())], { time_stamp }))
      await ingest('/pod/spec', podPost({ time_stamp, pod_namespace: null, pod_ip: '2001:db8::1' }))
      await ingest(
        '/svc/spec',
        servicePost({ svc_name: 'payments', svc_namespace: 'shop', service_spec: { spec: { note: 'é "quoted" \\' } } }),
      )
      assert.equal(
        (
          await ingest(
            '/pod/traffic/batch',
            Array.from({ length: FLOWS }, (_, n) => flow(n + 1)),
          )
        ).json,
        FLOWS,
      )
      // A busy machine may drop flows for the evaluator: post until a verdict is stored, then wait for the queue to
      // empty.
      await until('there are verdicts', async () => {
        await ingest('/pod/traffic/batch', [flow(++last)])
        return (await read('/audit/verdicts')).json.length > 0
      })
      await until('the forwarder is idle', async () => {
        const { text } = await get(`${api()}/metrics`)
        return /^broker_audit_queue_length 0$/m.test(text) && /^broker_audit_inflight_available 16$/m.test(text)
      })
    },
    'For real': async () => {
      const [pods, services, flows, images, verdicts] = readFileSync(join(checkout, 'now.txt'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      const counts = [pods.length, services.length, flows.length, images.items.length]
      assert.deepEqual(counts, [23, 1, last, 21], 'the drill compared something')
      assert.ok(verdicts.length > 0)
      assert.deepEqual([...standIn.running.keys()].sort(), ['broker', 'edge'])
      // Posted after the dump, so it is lost with the old database.
      assert.equal((await ingest('/pod/traffic/batch', [flow(last + 1)])).json, 1)
    },
  }
  let section = ''
  /** The reason to skip the remaining blocks. */
  let stuck: string | undefined

  for (const block of run) {
    test(`${block.place}, ${block.section}: ${commandsOf(block)[0]}`, async (t) => {
      if (missing ?? stuck) return t.skip(missing ?? stuck)
      stuck = `the block at ${block.place} failed`
      if (block.section !== section) await arrange[block.section]?.()
      section = block.section
      const text = block.text.replace(/(localhost|127\.0\.0\.1):(\d{4})\b/g, (_, host: string, port: string) => {
        assert.ok(ports.has(Number(port)), `no port ${port} is expected`)
        return `${host}:${ports.get(Number(port))}`
      })
      assert.equal(await shell.run(text), block.output)
      stuck = undefined
    })
  }

  test('only the owner can read the file of tokens', (t) => {
    if (missing ?? stuck) return t.skip(missing ?? stuck)
    assert.equal(statSync(join(checkout, 'wrangler-free-deploy/.env')).mode & 0o077, 0)
  })

  test('the restored database has the data of the dump and not what was posted later', async (t) => {
    if (missing ?? stuck) return t.skip(missing ?? stuck)
    assert.equal((await read('/pod/traffic')).json.length, last)
    assert.equal((await ingest('/pod/traffic/batch', [flow(1), flow(last + 1)])).json, 1)
  })
})

describe('names and values', () => {
  test('blocks run, or use programs that are not available here', () => {
    assert.ok(run.length >= 12 && shown.length >= 10)
    for (const { language, tags, place } of blocks) {
      assert.ok(['sh', 'text', ...FILES].includes(language), `${place}: ${language}`)
      for (const tag of tags) assert.equal(tag, 'run', place)
    }
    for (const block of shown)
      for (const command of commandsOf(block))
        assert.match(
          command,
          /^(docker (build|buildx|run|compose up)|helm (install|upgrade)|kubectl|npm|pg_(dump|restore)|(DATABASE_URL=\S+ DB_PREPARE=false|NODE_ENV=production)) /,
          block.place,
        )
  })

  test('commands of npm and node exist in package.json', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>
    }
    const commands = shown.flatMap(commandsOf)
    for (const [, name] of commands.join('\n').matchAll(/npm run (\w+)/g)) assert.ok(name! in scripts, name)
    const [line, ...others] = commands.filter((command) => command.startsWith('NODE_ENV='))
    assert.deepEqual(others, [])
    const program = scripts.start!.replace(/^.* && /, '').replace(' exec ', ' ')
    assert.ok(line!.endsWith(` ${program}`), `\`npm start\` is: ${scripts.start}`)
  })

  test('the image is that of compose.yaml', () => {
    const { image } = readCompose().services.broker!
    for (const [found] of page.matchAll(/cluster-telemetry-broker:[\d.]+/g)) assert.equal(found, image)
  })

  test('programs in the image have sources', () => {
    const programs = [...page.matchAll(/\bdist\/([\w/-]+)\.js/g)].map(([, path]) => path!)
    assert.ok(programs.length >= 4)
    for (const path of programs) assert.ok(existsSync(join(ROOT, `${path}.ts`)), path)
  })

  test('the broker or compose.yaml knows each variable', () => {
    const known = new Set(
      [...configTable().matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!).concat([...composeVariables()]),
    )
    for (const [, name] of page.matchAll(/`([A-Z]+_[A-Z_]+)(?:=[^`]*)?`/g)) assert.ok(known.has(name!), name)
  })

  test('the table of compose.yaml has its variables with their defaults', () => {
    const source = readFileSync(join(ROOT, 'wrangler-free-deploy/compose.yaml'), 'utf8')
    for (const name of composeVariables()) {
      const [, fallback] = new RegExp(`\\$\\{${name}:-([^}]*)\\}`).exec(source)!
      const row = page.split('\n').find((line) => line.startsWith('| `') && line.split('|')[1]!.includes(`\`${name}\``))
      assert.ok(row, name)
      assert.equal(row.split('|')[2]!.trim(), fallback === '' ? 'unset' : `\`${fallback}\``, name)
    }
  })

  test('the table of jobs has every job and how often it runs', () => {
    const config = loadConfig({ TELEMETRY_ENDPOINT: 'https://version.test' })
    const often: Record<number, string> = {
      10: 'ten seconds',
      60: 'minute',
      300: 'five minutes',
      600: 'ten minutes',
      3600: 'hour',
      86400: 'day',
    }
    const rows = [
      ...page.matchAll(/^\| `([a-z-]+)` \| .* \| (ten seconds|minute|five minutes|ten minutes|hour|day) \|$/gm),
    ].map(([, name, every]) => [name, every])
    assert.deepEqual(
      rows,
      jobs.map((job) => [job.name, often[job.everySecs(config)!]]),
    )
  })

  test('metrics are exposed', async () => {
    const app = await startApp()
    const { text } = await app.get('/metrics')
    const names = [...page.matchAll(/`(broker_[a-z_]+)`/g)].map(([, name]) => name!)
    assert.ok(names.length >= 3)
    for (const name of names) assert.match(text, new RegExp(`^# TYPE ${name} `, 'm'))
  })

  test('the refusal of a newer schema has the text of the page', () => {
    const [said, ...others] = blocks.filter(({ language }) => language === 'text')
    assert.deepEqual(others, [])
    const [found, known] = said!.text.match(/\d+/g)!.map(Number) as [number, number]
    assert.equal(said!.text, new SchemaTooNew(found, known).message)
  })

  describe('the chart', () => {
    const values = load(readFileSync(join(ROOT, CHART, 'values.yaml'), 'utf8')) as Values
    const of = (path: string) =>
      path.split('.').reduce<unknown>((value, key) => (value as Values | undefined)?.[key], values)
    const commands = shown.flatMap(commandsOf)

    test('it has the values that commands set', () => {
      const set = commands
        .filter((command) => command.startsWith('helm '))
        .flatMap((command) => [...command.matchAll(/--set (\S+?)=/g)])
      assert.ok(set.length >= 6)
      for (const [, path] of set) assert.notEqual(of(path!), undefined, path)
      for (const command of commands.filter((one) => one.startsWith('helm ')))
        assert.match(command, new RegExp(`^helm \\w+ telemetry ${CHART} `))
    })

    test('helm renders the installations of the page', (t) => {
      const { HELM } = process.env
      if (!HELM) return t.skip('HELM names no helm: scripts/chart-check.sh builds one')
      for (const command of commands.filter((one) => one.startsWith('helm '))) {
        const rendering = command
          .replace(/^helm (install|upgrade)/, `"$HELM" template --kube-version ${oldestKubernetes}.0`)
          .replace(/ --(wait|create-namespace)\b/g, '')
          // The image of the installed release.
          .replace(' --reset-then-reuse-values', ' --values test/chart/image.yaml')
        const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', rendering], { cwd: ROOT, encoding: 'utf8' })
        assert.deepEqual([status, stderr], [0, ''], command)
        assert.match(stdout, /^kind: Deployment$/m)
      }
    })

    test('it has the values that the page names', () => {
      const named = [...page.matchAll(/`([a-z]\w*(?:\.\w+)+)(?:=[^`]*)?`/g)].map(([, path]) => path!)
      assert.ok(named.length >= 15)
      for (const path of named) assert.notEqual(of(path), undefined, path)
    })

    test('it has the defaults of the page', () => {
      const rows = [...page.matchAll(/^\| (`[a-zA-Z]+\..*?) \| `([^`]*)` \|/gm)]
      assert.ok(rows.length >= 7)
      for (const [, names, fallback] of rows) {
        const [first, ...more] = [...names!.matchAll(/`([^`]+)`/g)].map(([, path]) => path!)
        assert.equal(String(of(first!)), fallback, first)
        // Values in one row share the default, or are empty.
        for (const path of more) assert.ok(['', fallback].includes(String(of(path))), path)
      }
    })

    test('it creates the objects that the page names', () => {
      const objects = [...page.matchAll(/\b(service|deployment|statefulset|cronjob)\/telemetry-([a-z-]+)/g)]
      assert.ok(objects.length >= 5)
      const templates = filesBelow(join(ROOT, CHART, 'templates')).map((path) => readFileSync(path, 'utf8'))
      for (const [whole, kind, suffix] of objects) {
        if (kind === 'cronjob')
          assert.ok(
            jobs.some(({ name }) => name === suffix),
            whole,
          )
        else
          assert.ok(
            templates.some((text) => new RegExp(`^kind: ${kind}$`, 'im').test(text) && text.includes(`}}-${suffix}\n`)),
            whole,
          )
      }
    })

    test('it needs the Kubernetes version of the page', () => {
      const { kubeVersion } = load(readFileSync(join(ROOT, CHART, 'Chart.yaml'), 'utf8')) as { kubeVersion: string }
      assert.equal(oldestKubernetes, /(\d+\.\d+)/.exec(kubeVersion)![1])
    })
  })
})

test('the parser finds blocks, their sections and their output', () => {
  const text = '# A\n```sh run\na \\\n  b\n```\n\n```text\nx\n```\n\nwords\n\n```text\ny\n```\n## B\n```sh\nc\n```\n'
  const found: Block[] = blocksOf(text)
  assert.deepEqual(
    found.map(({ section, line, language, output }) => [section, line, language, output]),
    [
      ['A', 2, 'sh', 'x\n'],
      ['A', 13, 'text', ''],
      ['B', 17, 'sh', ''],
    ],
  )
  assert.deepEqual(commandsOf(found[0]!), ['a  b'])
  assert.throws(() => blocksOf('```sh\n'), /no end/)
})

interface Values {
  [key: string]: unknown
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)],
  )
}
