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
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Account, unprivileged } from '../../lib/db/embedded/account.ts'
import type { Launcher } from '../../lib/db/embedded/launcher.ts'
import { choosePlace } from '../../lib/db/embedded/place.ts'
import { copyPrograms, reachablePrograms } from '../../lib/db/embedded/programs.ts'

const OTHER: Account = { uid: process.getuid!(), gid: process.getgid!(), name: 'somebody' }

/** Two folders: what only we can enter, and what others can. */
function folders(t: TestContext, parent = tmpdir()) {
  const root = realpathSync(mkdtempSync(join(parent, 'broker-place-')))
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

/** Another user by the modes of folders, so that these tests need no second account. */
function otherUser(root: string): (account: Account | undefined) => Launcher {
  const enters = (path: string): boolean =>
    path.length <= root.length || (enters(dirname(path)) && existsSync(path) && isOpen(path))
  const isOpen = (path: string) => path.endsWith('/postgres') || (statSync(path).mode & 0o001) !== 0
  return (account) => ({
    account,
    spawn: () => assert.fail('nothing is started'),
    finds: (_, path) => enters(realpathSync(path!)),
  })
}

const choose = ({ root, base }: { root: string; base: string }, dataDir: string) =>
  choosePlace(dataDir, base, () => OTHER, otherUser(root)).home

/** What counts as a cluster, with something to know it by. */
function cluster(folder: string, mark = 'data'): void {
  mkdirSync(join(folder, 'postgres'), { mode: 0o700 })
  writeFileSync(join(folder, 'postgres', 'PG_VERSION'), '18\n')
  writeFileSync(join(folder, 'postgres', 'mark'), mark)
}

const mark = (home: string) => readFileSync(join(home, 'postgres', 'mark'), 'utf8')

test('our own user gets everywhere: the data folder, whatever its mode', (t) => {
  const { root, base, dataDir } = folders(t)
  const place = choosePlace(dataDir, base, () => undefined, otherUser(root))
  assert.equal(place.home, dataDir)
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

test('a closed folder with nothing in it but ours is opened for passing; one with something else is not', (t) => {
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

test('below a closed folder the data gets a place of its own, found again by the same folder alone', (t) => {
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

test('the place is found again without the link, after a move with it, and once the folder is open', (t) => {
  const site = folders(t)
  const { dataDir, root } = site
  const home = choose(site, dataDir)
  cluster(home)
  rmSync(join(dataDir, 'postgres'))
  assert.equal(choose(site, dataDir), home)
  const moved = join(root, 'home', 'moved')
  renameSync(dataDir, moved)
  assert.equal(choose(site, moved), home)
  renameSync(moved, dataDir)
  chmodSync(join(root, 'home'), 0o755)
  chmodSync(dataDir, 0o755)
  assert.equal(choose(site, dataDir), home)
  assert.equal(mark(home), 'data')
})

test('a cluster that is there already is moved, and moved once', (t) => {
  const site = folders(t)
  const { dataDir } = site
  cluster(dataDir, 'moved')
  const home = choose(site, dataDir)
  assert.notEqual(home, dataDir)
  assert.equal(mark(home), 'moved')
  assert.equal(choose(site, dataDir), home)
  assert.equal(mark(dataDir), 'moved', 'by the link')
})

const OTHER_DISK = '/dev/shm'
const isOtherDisk = existsSync(OTHER_DISK) && statSync(OTHER_DISK).dev !== statSync(tmpdir()).dev

test('from another file system it is copied, and the original stays', {
  skip: !isOtherDisk && `${OTHER_DISK} is none`,
}, (t) => {
  const site = folders(t)
  const { dataDir, root } = folders(t, OTHER_DISK)
  cluster(dataDir, 'copied')
  const home = choose({ ...site, root }, dataDir)
  assert.equal(mark(home), 'copied')
  assert.deepEqual(readdirSync(home).sort(), ['origin', 'postgres'])
  assert.deepEqual(readdirSync(dataDir).sort(), ['postgres', 'postgres.before-move'])
  assert.equal(choose({ ...site, root }, dataDir), home)
})

test('two clusters for one folder, or one behind a link that is not ours: nobody chooses for the user', (t) => {
  const site = folders(t)
  const { dataDir, make } = site
  cluster(choose(site, dataDir), 'shared')
  rmSync(join(dataDir, 'postgres'))
  cluster(dataDir, 'inside')
  assert.throws(() => choose(site, dataDir), {
    name: 'EmbeddedUnavailable',
    message: /keep one of the two.*DATABASE_URL/,
  })
  assert.equal(mark(dataDir), 'inside')

  const linked = make('home/linked', 0o700)
  cluster(make('home/elsewhere', 0o700))
  symlinkSync(join(site.root, 'home/elsewhere/postgres'), join(linked, 'postgres'))
  assert.throws(() => choose(site, linked), {
    name: 'EmbeddedUnavailable',
    message: /leads to a folder that somebody cannot reach/,
  })
})

test('a shared folder that others may write to is not trusted, nor one that is a link', (t) => {
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

/** Like the installed programs: a link, a mode that only we may use, and what is left out. */
function programs(t: TestContext) {
  const { make, base } = folders(t)
  const root = make('native', 0o700)
  for (const folder of ['bin', 'lib', 'lib/pkgconfig']) make(`native/${folder}`, 0o700)
  writeFileSync(join(root, 'bin/postgres'), 'program', { mode: 0o700 })
  writeFileSync(join(root, 'bin/initdb'), 'program', { mode: 0o700 })
  writeFileSync(join(root, 'lib/libpq.so.5.18'), 'library', { mode: 0o600 })
  writeFileSync(join(root, 'lib/libpq.a'), 'archive')
  symlinkSync('libpq.so.5.18', join(root, 'lib/libpq.so'))
  return { root, base, parent: make('copies', 0o755) }
}

test('programs are copied once, with modes for others, and again when the copy is damaged or they are another version', (t) => {
  const { root, parent } = programs(t)
  const copy = copyPrograms(root, parent)
  assert.equal(readFileSync(join(copy, 'lib/libpq.so'), 'utf8'), 'library')
  assert.deepEqual(readdirSync(join(copy, 'lib')).sort(), ['libpq.so', 'libpq.so.5.18'])
  const modes = ['', 'bin', 'bin/postgres', 'lib/libpq.so.5.18'].map((path) => statSync(join(copy, path)).mode & 0o777)
  assert.deepEqual(modes, [0o755, 0o755, 0o755, 0o644])
  const { ino } = statSync(join(copy, 'bin/postgres'))
  assert.equal(copyPrograms(root, parent), copy)
  assert.equal(statSync(join(copy, 'bin/postgres')).ino, ino)

  truncateSync(join(copy, 'bin/initdb'), 3)
  assert.equal(copyPrograms(root, parent), copy)
  assert.equal(readFileSync(join(copy, 'bin/initdb'), 'utf8'), 'program')
  assert.deepEqual(readdirSync(parent).length, 1, 'the damaged one is gone')

  writeFileSync(join(root, 'bin/postgres'), 'a newer program')
  const newer = copyPrograms(root, parent)
  assert.notEqual(newer, copy)
  assert.equal(readFileSync(join(copy, 'bin/postgres'), 'utf8'), 'program', 'the older server may be running')
})

test('programs that the other user can run stay where they are, and so do those of our own', (t) => {
  const { root, base } = programs(t)
  const installed = { postgres: join(root, 'bin/postgres'), initdb: join(root, 'bin/initdb') }
  const launcher = (account: Account | undefined, finds: boolean): Launcher => ({
    account,
    spawn: () => assert.fail(),
    finds: () => finds,
  })
  assert.equal(reachablePrograms(installed, launcher(undefined, false), base), installed)
  assert.equal(reachablePrograms(installed, launcher(OTHER, true), base), installed)
  const { postgres } = reachablePrograms(installed, launcher(OTHER, false), base)
  assert.equal(dirname(dirname(dirname(postgres))), join(base, 'programs'))
})

test('the account is nobody, else another one without privileges, and never root', (t) => {
  const { root } = folders(t)
  const account = (text: string) => {
    writeFileSync(join(root, 'passwd'), text)
    return unprivileged(join(root, 'passwd'))
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
  assert.throws(() => unprivileged(join(root, 'no such file')), none)
})
