/**
 * Exported profiles in a container runtime: libseccomp loads them, and the kernel allows exactly the listed syscalls.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { startApp } from '../support/app.ts'
import { observe } from '../support/observed-workload.ts'

const app = await startApp()
const CONSUMER = fileURLToPath(new URL('../support/seccomp-consumer.py', import.meta.url))
const SKIP = 77

interface Profile {
  readonly defaultAction: string
  readonly architectures?: readonly string[]
  readonly syscalls: readonly { readonly names: readonly string[]; readonly action: string }[]
}

interface Consumed {
  readonly unknown: readonly string[]
  readonly architectures: readonly string[]
  readonly outcomes: Readonly<Record<string, string>>
}

/** The outcome of syscalls under a profile, or why it cannot be tested here. */
function consume(profile: Profile, tried: readonly string[]): Consumed | string {
  const input = JSON.stringify({ profile, try: tried })
  const { error, status, stdout, stderr } = spawnSync('python3', [CONSUMER], { input, encoding: 'utf8' })
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return 'python3 is not installed'
  if (status === SKIP) return stderr.trim()
  assert.equal(status, 0, stderr)
  return JSON.parse(stdout)
}

/** The syscalls that a process needs after the filter is loaded, with any allocator. */
const NEEDED = [
  ...[
    'brk',
    'clock_gettime',
    'close',
    'exit',
    'exit_group',
    'fstat',
    'futex',
    'getrandom',
    'lseek',
    'madvise',
    'mmap',
    'mprotect',
    'mremap',
  ],
  ...['munmap', 'openat', 'pread64', 'read', 'rt_sigaction', 'rt_sigprocmask', 'rt_sigreturn', 'sched_yield', 'write'],
]
const LISTED = 'getppid'
const UNLISTED = 'getpid'
const OUTCOMES = {
  SCMP_ACT_LOG: 'passes',
  SCMP_ACT_ERRNO: 'EPERM',
  SCMP_ACT_KILL: 'SIGSYS',
  SCMP_ACT_KILL_PROCESS: 'SIGSYS',
}

const reason = consume({ defaultAction: 'SCMP_ACT_LOG', syscalls: [] }, [LISTED])
const skip = typeof reason === 'string' && `${reason}: no profile was tried`

const native = process.arch === 'arm64' ? 'aarch64' : 'x86_64'
const workload = (fields = {}) => observe(app, { names: [...NEEDED, LISTED].sort(), arches: [native], ...fields })

const specOf = async (path: string, body: object = {}) => (await app.post(path, { format: 'json', ...body })).json.spec

for (const [defaultAction, expected] of Object.entries(OUTCOMES)) {
  test(`an exported profile with ${defaultAction}: listed syscalls pass, others ${expected}`, {
    skip,
  }, async () => {
    const { path } = await workload()
    const spec = await specOf(path, { defaultAction })
    assert.equal(spec.defaultAction, defaultAction)
    assert.deepEqual(consume(spec, [LISTED, UNLISTED]), {
      unknown: [],
      architectures: spec.architectures,
      outcomes: { [LISTED]: 'passes', [UNLISTED]: expected },
    })
  })
}

test('edits of an export change which syscalls pass', { skip }, async () => {
  const { path } = await workload()
  const consumed = consume(await specOf(path, { defaultAction: 'SCMP_ACT_ERRNO', add: [UNLISTED], remove: [LISTED] }), [
    LISTED,
    UNLISTED,
  ])
  assert.deepEqual((consumed as Consumed).outcomes, { [LISTED]: 'EPERM', [UNLISTED]: 'passes' })
})

test('a profile for several architectures is loaded, and one without architectures', { skip }, async () => {
  for (const arches of [['aarch64', 'x86_64'], ['riscv64'], []]) {
    const { path } = await workload({ arches })
    const spec = await specOf(path, { defaultAction: 'SCMP_ACT_ERRNO' })
    const consumed = consume(spec, [LISTED, UNLISTED]) as Consumed
    assert.deepEqual(consumed.outcomes, { [LISTED]: 'passes', [UNLISTED]: 'EPERM' })
    assert.equal(consumed.architectures.length, arches.length === 2 ? 2 : 0)
  }
})

test('no exported name is read as a number by libseccomp or breaks it', { skip }, async () => {
  const { path } = await workload({ names: ['-1', '1', '435', 'READ', 'no_such_syscall', ...NEEDED, LISTED].sort() })
  const consumed = consume(await specOf(path, { defaultAction: 'SCMP_ACT_ERRNO' }), [LISTED, UNLISTED]) as Consumed
  assert.deepEqual(consumed.unknown, ['no_such_syscall'])
})

test('the file of a profile equals an export, and is loaded', { skip }, async () => {
  const { path, namespace, kind, name, hash } = await workload({ names: ['435', ...NEEDED, LISTED].sort() })
  const { status, json: file } = await app.get(`/seccomp/profile-file/${namespace}/${kind}/${name}/${hash}`)
  assert.equal(status, 200)
  const { workloadRef: _, ...spec } = await specOf(path)
  assert.deepEqual(file, spec)
  for (const [defaultAction, expected] of Object.entries(OUTCOMES))
    assert.deepEqual((consume({ ...file, defaultAction }, [LISTED, UNLISTED]) as Consumed).outcomes, {
      [LISTED]: 'passes',
      [UNLISTED]: expected,
    })
})
