/** All documents: links and paths exist, and shell blocks are run by a test or listed here. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { blocksOf, commandsOf } from './document.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const markdown = (folder: string) =>
  readdirSync(join(ROOT, folder)).flatMap((name) => (name.endsWith('.md') ? [join(folder, name)] : []))
const pages = [
  ...markdown('.'),
  ...markdown('docs'),
  ...markdown('wrangler-free-deploy/chart'),
  ...markdown('wrangler-free-deploy/edge'),
]
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** Pages whose blocks are run, and the test that runs them. */
const RUN_BY: Record<string, string> = {
  'README.md': 'readme.test.ts',
  'docs/tour.md': 'readme.test.ts',
  'docs/clients.md': 'clients.test.ts',
  'docs/install.md': 'docs.test.ts',
  'docs/operations.md': 'docs.test.ts',
}

/** Commands in blocks that are not run, and the reason. */
const NOT_RUN: readonly (readonly [command: RegExp, why: string])[] = [
  [/^docker (build|buildx|run) /, 'takes the engine of Docker: image.test.ts builds and runs what the Dockerfile says'],
  [/^docker compose (-f \S+ )?up --build/, 'the stand-in of docs.test.ts runs it in the section of Compose'],
  [
    /^helm (install|upgrade) /,
    'takes a cluster: docs.test.ts renders it where there is a helm, and holds its values to the chart',
  ],
  [/^curl -sN .*follow=true/, 'goes on for nine minutes: flows-follow.test.ts follows flows'],
  [/^ctb (?!completion )/, 'test/cli/manual.test.ts runs the examples of all commands'],
  [/^(source <\()?ctb completion /, 'test/cli/completion.test.ts runs it'],
  [/^kubectl /, 'takes a cluster: docs.test.ts holds its names to the chart'],
  [/^npm ci( && npm (start|test) .*)?$/, 'installs: .ci/run does it, and private-folder.test.ts starts a clone'],
  [
    /^NODE_ENV=production .* dist\/lib\/server\.js$/,
    'docs.test.ts holds it to `npm start`, which private-folder.test.ts runs',
  ],
  [/^npm (start|test|run|version)\b/, 'of who works on it; scripts that are named are held to package.json'],
  [/^(pg_dump|pg_restore|DATABASE_URL=\S+ DB_PREPARE=false npm run migrate)\b/, 'failover.test.ts runs it'],
  [/^npx tsx test\/faults\/everything\.ts /, 'takes half an hour and PgBouncer'],
  [
    /^(npx|node --import) tsx test\/console\/support\/demo\.ts /,
    'runs until it is stopped: the tests of the console use the same seed',
  ],
  [/^scripts\/(chart|policies)-check\.sh /, '.ci/run runs it'],
  [/^node dist\/jobs\/run\.js NAME /, 'test/jobs runs each'],
]

/** The anchor that GitHub gives a heading. */
const anchor = (title: string) =>
  title
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replace(/\s/g, '-')
const anchorsOf = (text: string) => new Set([...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) => anchor(title!)))

for (const page of pages)
  describe(page, () => {
    const text = read(page)

    test('links have a target', () => {
      const prose = text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '')
      for (const [, target] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target!)) continue
        const [path, fragment] = target!.split('#') as [string, string?]
        const file = path === '' ? page : join(dirname(page), path)
        assert.ok(existsSync(join(ROOT, file)), target)
        if (fragment) assert.ok(anchorsOf(read(file)).has(fragment), target)
      }
    })

    test('files and folders that it names exist', () => {
      const named = text.matchAll(
        /(?<![\w/.*-])((?:handlers|lib|jobs|sql|test|scripts|docs|wrangler-free-deploy)\/[\w./-]*)/g,
      )
      for (const [, path] of named) {
        const whole = path!.replace(/\.$/, '')
        // The operator creates this file.
        if (whole === 'wrangler-free-deploy/.env') continue
        // Programs have another file ending in the build.
        assert.ok(
          [whole, `${whole}.ts`, join(dirname(page), whole)].some((one) => existsSync(join(ROOT, one))),
          whole,
        )
      }
    })

    test('every shell block is run or listed', () => {
      for (const block of blocksOf(text)) {
        if (block.language !== 'sh') continue
        if (block.tags.length > 0) assert.ok(RUN_BY[page], `line ${block.line}: no test runs this page`)
        else
          for (const command of commandsOf(block))
            assert.ok(
              NOT_RUN.some(([pattern]) => pattern.test(command)),
              `line ${block.line}: ${command}`,
            )
      }
    })

    test('scripts of npm that it names are in package.json', () => {
      const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
      for (const [, name] of text.matchAll(/\bnpm run (?:--silent )?([\w:-]+)/g)) assert.ok(name! in scripts, name)
    })
  })

test('the tests that run pages exist and name them', () => {
  for (const [page, file] of Object.entries(RUN_BY))
    assert.ok(read(join('test/install', file)).includes(page.replace('docs/', '')), page)
})

test('every listed command is still in a document', () => {
  const commands = pages.flatMap((page) =>
    blocksOf(read(page))
      .filter(({ tags }) => tags.length === 0)
      .flatMap(commandsOf),
  )
  for (const [pattern] of NOT_RUN)
    assert.ok(
      commands.some((one) => pattern.test(one)),
      String(pattern),
    )
})

test('the schema has the tables that the architecture names', () => {
  const tables = new Set(
    [...read('sql/schema.snapshot.sql').matchAll(/^table public\.(\w+)/gm)].map(([, name]) => name!),
  )
  const [, rows] = /\| Tables \|[^\n]*\n\|[-|]*\n([\s\S]*?)\n\n/.exec(read('docs/architecture.md'))!
  const named = [...rows!.matchAll(/^\| ([^|]*) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
  )
  assert.ok(named.length >= 20)
  for (const name of named) assert.ok(tables.has(name), name)
})
