import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  type Account,
  chooseHome,
  type Launcher,
  runnableBinaries,
  unprivilegedAccount,
} from '../../lib/db/embedded/root.ts'

const OTHER: Account = { uid: process.getuid!(), gid: process.getgid!(), name: 'somebody' }

/** A closed data folder inside a closed folder, and the place of the shared folder. */
function folders(t: TestContext) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'broker-root-')))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  chmodSync(root, 0o711)
  const make = (path: string, mode: number) => {
    mkdirSync(join(root, path), { recursive: true })
    chmodSync(join(root, path), mode)
    return join(root, path)
  }
  return {
    root,
    make,
    dataDir: make('home', 0o700) && make('home/data', 0o700),
    base: join(make('lib', 0o755), 'shared'),
  }
}

/** The other user is simulated by the modes of folders, so that no second account is needed. */
function otherUser(root: string): Launcher {
  const canEnter = (path: string): boolean =>
    path.length <= root.length || (canEnter(dirname(path)) && existsSync(path) && (statSync(path).mode & 0o001) !== 0)
  return {
    account: OTHER,
    spawn: () => assert.fail('nothing is started'),
    succeeds: (_, path) => canEnter(realpathSync(path!)),
  }
}

const choose = ({ root, base }: { root: string; base: string }, dataDir: string) =>
  chooseHome(dataDir, otherUser(root), base)

/** A folder that counts as a cluster. */
function cluster(folder: string): void {
  mkdirSync(join(folder, 'postgres'), { mode: 0o700 })
  writeFileSync(join(folder, 'postgres', 'PG_VERSION'), '18\n')
}

test('our own user keeps its data in the data folder, whatever its mode', (t) => {
  const { root, base, dataDir } = folders(t)
  assert.equal(chooseHome(dataDir, { ...otherUser(root), account: undefined }, base), dataDir)
  assert.equal(statSync(dataDir).mode & 0o777, 0o700)
  assert.equal(existsSync(base), false)
})

test('a folder that the other user can enter is used as it is', (t) => {
  const site = folders(t)
  const dataDir = site.make('open', 0o755)
  writeFileSync(join(dataDir, 'notes'), '')
  assert.equal(choose(site, dataDir), dataDir)
  assert.equal(statSync(dataDir).mode & 0o777, 0o755)
})

test('a closed folder with only our entries is opened for passing; one with another entry is not', (t) => {
  const site = folders(t)
  const ours = site.make('ours', 0o700)
  cluster(ours)
  assert.equal(choose(site, ours), ours)
  assert.equal(statSync(ours).mode & 0o777, 0o701)
  const mixed = site.make('mixed', 0o700)
  writeFileSync(join(mixed, 'diary'), '')
  assert.notEqual(choose(site, mixed), mixed)
  assert.equal(statSync(mixed).mode & 0o777, 0o700)
})

test('below a closed folder the data gets a shared folder, which only the same data folder finds again', (t) => {
  const site = folders(t)
  const { base, dataDir } = site
  const home = choose(site, dataDir)
  assert.equal(dirname(home), join(base, 'data'))
  assert.equal(statSync(dataDir).mode & 0o777, 0o700, 'opening it would not help')
  assert.ok(readFileSync(join(home, 'origin'), 'utf8').includes(dataDir))
  assert.equal(readlinkSync(join(dataDir, 'postgres')), join(home, 'postgres'))
  for (const folder of [base, join(base, 'data'), home]) assert.equal(statSync(folder).mode & 0o777, 0o711)

  cluster(home)
  assert.equal(choose(site, dataDir), home)
  assert.notEqual(choose(site, site.make('home/other', 0o700)), home)
})

test('the shared folder is found without the link, after a move with it, and once the data folder is open', (t) => {
  const site = folders(t)
  const { dataDir, root } = site
  const home = choose(site, dataDir)
  cluster(home)
  rmSync(join(dataDir, 'postgres'))
  assert.equal(choose(site, dataDir), home)
  const moved = join(root, 'home', 'moved')
  renameSync(dataDir, moved)
  assert.equal(choose(site, moved), home)
  chmodSync(join(root, 'home'), 0o755)
  chmodSync(moved, 0o755)
  assert.equal(choose(site, moved), home)
})

test('a cluster that the other user cannot reach is refused with the reason, also behind a foreign link', (t) => {
  const site = folders(t)
  const refusal = { name: 'EmbeddedUnavailable', message: /^DATA_DIR: somebody.* cannot enter .*; set DATABASE_URL/ }
  cluster(site.dataDir)
  assert.throws(() => choose(site, site.dataDir), refusal)
  const linked = site.make('home/linked', 0o700)
  symlinkSync(join(site.dataDir, 'postgres'), join(linked, 'postgres'))
  assert.throws(() => choose(site, linked), refusal)
  assert.equal(existsSync(site.base), false)
})

test('a shared folder that others may write to is refused, and so is a link', (t) => {
  const site = folders(t)
  mkdirSync(site.base)
  chmodSync(site.base, 0o777)
  assert.throws(() => choose(site, site.dataDir), {
    name: 'EmbeddedUnavailable',
    message: /only user \d+ may write to/,
  })
  rmSync(site.base, { recursive: true })
  symlinkSync(site.make('elsewhere', 0o755), site.base)
  assert.throws(() => choose(site, site.dataDir), { name: 'EmbeddedUnavailable' })
})

test('programs that the other user cannot run are copied once for each version, readable for others', async (t) => {
  const { make, base } = folders(t)
  const native = make('package/native', 0o700)
  const [bin, lib] = [make('package/native/bin', 0o700), make('package/native/lib', 0o700)]
  writeFileSync(join(bin, 'postgres'), 'program', { mode: 0o700 })
  writeFileSync(join(bin, 'initdb'), 'program', { mode: 0o700 })
  writeFileSync(join(lib, 'libpq.so.5.18'), 'library', { mode: 0o600 })
  symlinkSync('libpq.so.5.18', join(lib, 'libpq.so'))
  const release = (version: string) => writeFileSync(join(dirname(native), 'package.json'), JSON.stringify({ version }))
  release('18.4.0')
  const installed = { postgres: join(bin, 'postgres'), initdb: join(bin, 'initdb') }
  const choosing = (account: Account | undefined, succeeds: boolean) =>
    runnableBinaries(installed, { account, spawn: () => assert.fail(), succeeds: () => succeeds }, base)

  assert.equal(await choosing(undefined, false), installed)
  assert.equal(await choosing(OTHER, true), installed)
  const { postgres, initdb } = await choosing(OTHER, false)
  const copy = dirname(dirname(postgres))
  assert.deepEqual([dirname(copy), initdb], [join(base, 'programs'), join(copy, 'bin/initdb')])
  assert.equal(readFileSync(join(copy, 'lib/libpq.so'), 'utf8'), 'library')
  const modes = ['', 'bin', 'bin/postgres', 'lib/libpq.so.5.18'].map((path) => statSync(join(copy, path)).mode & 0o777)
  assert.deepEqual(modes, [0o755, 0o755, 0o755, 0o644])
  const { ino } = statSync(postgres)
  assert.equal(statSync((await choosing(OTHER, false)).postgres).ino, ino)
  release('18.5.0')
  assert.notEqual((await choosing(OTHER, false)).postgres, postgres)
  assert.equal(readdirSync(join(base, 'programs')).length, 2, 'a server of the older version may be running')
})

test('the account is nobody, else another one without privileges, and never root', (t) => {
  const { root } = folders(t)
  const account = (text: string) => {
    writeFileSync(join(root, 'passwd'), text)
    return unprivilegedAccount(join(root, 'passwd'))
  }
  const [superuser, daemon, nobody, user] = [
    'root:x:0:0::/root:/bin/sh',
    'daemon:x:1:1::/:/bin/false',
    'nobody:x:65534:65533::/:',
    'node:x:1000:1000::/home/node:',
  ]
  assert.deepEqual(account([superuser, daemon, nobody].join('\n')), { uid: 65534, gid: 65533, name: 'nobody' })
  assert.equal(account([superuser, user, daemon].join('\n')).name, 'daemon')
  assert.equal(account([superuser, user].join('\n')).name, 'node')
  const none = { name: 'EmbeddedUnavailable', message: /names no other user.*DATABASE_URL/ }
  assert.throws(() => account(`${superuser}\nbroken:x\n`), none)
  assert.throws(() => unprivilegedAccount(join(root, 'no such file')), none)
})
