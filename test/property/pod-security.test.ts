/** Random pods against a model of the Pod Security Standards (docs/contract.md#workload-profiles). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { InventoryRow } from '../../lib/profile/inventory.ts'
import { podSecuritySnapshot, rejudge } from '../../lib/profile/pod-security/index.ts'
import { PodSecurity } from '../../lib/profile/record/pod-security.ts'
import { capabilitiesOf, evidence, type Fields, inPod, judged, row, SAFE } from '../profile/pod-security.ts'
import {
  type Container,
  evaluate,
  type Failure,
  findingsOf,
  judgedRows,
  levelOf,
  type Manifest,
  manifestOf,
  merged,
  type PodSpec,
  reported,
} from '../profile/pod-security-model.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'

const RUNS = depth(300, 10_000)
const NAMES = ['app', 'side-car', 'setup', 'null', 'a: "b"', 'z\n- name: x']
const KINDS = { app: 'regular', 'side-car': 'regular', setup: 'init', null: 'ephemeral' } as const
const CAPABILITIES = ['ALL', 'CHOWN', 'NET_ADMIN', 'NET_BIND_SERVICE', 'SYS_CHROOT', 'CAP_CHOWN', 'all', 'chown']
const OBSERVABLE = ['CHOWN', 'NET_ADMIN', 'NET_BIND_SERVICE', 'SETUID']
const WORKLOADS = ['Deployment', 'CronJob', 'Pod', 'DaemonSet']

const flag = fc.constantFrom(null, true, false)
const user = fc.constantFrom(null, 0, 1000)
const profile = fc.constantFrom(null, 'RuntimeDefault', 'Localhost', 'Unconfined', 'unconfined')
const words = (from: readonly string[]) =>
  fc.option(
    fc.subarray([...from]).map((list) => list.sort()),
    { nil: null },
  )

/** Set fields only, as they are stored. */
const stored = <T extends object>(fields: T) => Object.fromEntries(Object.entries(fields).filter(([, v]) => v !== null))
const random = fc.record({
  privileged: flag,
  allowPrivilegeEscalation: flag,
  runAsNonRoot: flag,
  runAsUser: user,
  readOnlyRootFilesystem: flag,
  capabilitiesAdd: words(CAPABILITIES),
  capabilitiesDrop: words(['ALL', 'NET_RAW', 'all']),
  seccompProfileType: profile,
})
/** Most fields are safe, so that single faults occur. */
const nearlySafe = random.chain((fields) =>
  fc.subarray(Object.keys(fields), { maxLength: 2 }).map((changed) => ({
    ...SAFE,
    ...Object.fromEntries(changed.map((key) => [key, fields[key as keyof typeof fields]])),
  })),
)
const context = fc.oneof(random, nearlySafe).map(stored)
const podContext = fc.record({ runAsNonRoot: flag, runAsUser: user, seccompProfileType: profile }).map(stored)
const pod = fc.oneof(
  fc.constant({}),
  fc
    .record({
      ...{ automountServiceAccountToken: flag, hostNetwork: flag, hostPID: flag, hostIPC: flag },
      securityContext: fc.option(podContext, { nil: null }),
    })
    .map(stored),
  podContext.map((securityContext) => ({ automountServiceAccountToken: false, securityContext })),
)
const rowOf = fc
  .record({
    name: fc.constantFrom(...NAMES),
    context,
    pod,
    seen: fc.integer({ min: 0, max: 3 }),
    digest: fc.constantFrom('a', 'b', 'c').map(digestOf),
    state: fc.constantFrom('running', 'running', 'current', 'stale'),
  })
  .map(({ name, context, pod, seen, digest, state }): InventoryRow => {
    return row(name, context, {
      kind: KINDS[name as keyof typeof KINDS] ?? 'regular',
      digest,
      podSecurity: pod,
      lastSeen: `2026-05-01T10:00:00${['', '.250', '.250500', '.500'][seen]}Z`,
      isRunning: state === 'running',
      isCurrent: state !== 'stale',
    })
  })
const rows = fc.uniqueArray(rowOf, { maxLength: 9, selector: ({ container, digest }) => container + digest })
const observed = fc.dictionary(
  fc.constantFrom(...NAMES),
  fc.option(
    fc.subarray(OBSERVABLE).map((add) => evidence(add)),
    { nil: null },
  ),
)
const workload = fc.record({ rows, observed, kind: fc.constantFrom(...WORKLOADS) })

const keyOf = ({ part, check, field, value }: Failure) => JSON.stringify([part, check, field, value])
const failuresOf = ({ pod, containers }: Pick<PodSecurity, 'pod' | 'containers'>): Failure[] => [
  ...pod.failing.map((failing) => ({ part: null, ...failing })),
  ...containers.flatMap(({ name, failing }) => failing.map((one) => ({ part: name, ...one }))),
]

test('checks, levels, findings and status are those of the model', () => {
  fc.assert(
    fc.property(workload, ({ rows, observed, kind }) => {
      const { findings, patch: _, ...it } = judged(rows, { kind, capabilities: capabilitiesOf(observed) })
      assert.deepEqual(PodSecurity.parse(it), it)
      const manifest = manifestOf(rows)
      const judgedContainers = [...judgedRows(rows)].map(([name, { digest }]) => [name, digest])
      assert.deepEqual(
        it.containers.map(({ name, digest }) => [name, digest]),
        judgedContainers,
      )
      assert.equal(it.containers.length + it.staleContainers.length, new Set(rows.map((one) => one.container)).size)
      if (manifest === null) {
        assert.deepEqual([it.status, it.level, findings], ['unknown', null, []])
        return
      }
      const { failures, unjudged } = evaluate(manifest)
      assert.deepEqual(failuresOf(it).map(keyOf).sort(), failures.map(keyOf).sort())
      assert.equal(it.level, levelOf(failures))
      for (const { name, level } of it.containers)
        assert.equal(level, levelOf(failures.filter(({ part }) => part === name)))
      assert.deepEqual(new Set(it.unevaluatedChecks.slice(9)), unjudged)
      assert.equal(it.coverage.fraction, Number(((9 - unjudged.size) / 18).toFixed(2)))
      const found = findings.map(({ id, severity }) => `${id.replace('podSecurity.', '')} ${severity}`)
      assert.deepEqual(found.sort(), findingsOf(manifest).sort())
      assert.equal(it.status, statusOf(it.level, found))
    }),
    { numRuns: RUNS },
  )
})

function statusOf(level: string, found: readonly string[]): string {
  if (level === 'privileged' || found.some((one) => one.endsWith(' high'))) return 'risk'
  if (level === 'baseline' || found.some((one) => one.endsWith(' medium'))) return 'warn'
  return 'unknown'
}

const PATHS: Readonly<Record<string, readonly string[]>> = {
  Pod: ['spec'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
}
const specOf = (kind: string, patch: Fields) =>
  (PATHS[kind] ?? ['spec', 'template', 'spec']).reduce<Fields>((node, key) => {
    assert.deepEqual(Object.keys(node), [key])
    return node[key] as Fields
  }, patch)

const isSame = (some: readonly unknown[] = [], others: readonly unknown[]) =>
  JSON.stringify([...some].sort()) === JSON.stringify([...others].sort())
const capabilitiesIn = ({ securityContext }: Container) =>
  (securityContext.capabilities ?? {}) as { add?: string[]; drop?: string[] }

test('the patch lifts all that a template can, changes nothing else, and leaves nothing to recommend', () => {
  fc.assert(
    fc.property(workload, ({ rows, observed, kind }) => {
      const before = manifestOf(rows)
      const capabilities = capabilitiesOf(observed)
      const it = judged(rows, { kind, capabilities })
      if (before === null) return assert.equal(it.patch, null)
      const patch = it.patch === null ? null : specOf(kind, it.patch)
      const after: Manifest = {
        ...before,
        spec: patch === null ? before.spec : (merged(before.spec, patch) as PodSpec),
      }
      if (patch !== null) assert.notDeepEqual(after.spec, before.spec)
      const isEphemeral = (part: string | null) => after.spec.ephemeralContainers.some(({ name }) => name === part)
      const left = evaluate(after).failures.filter(({ part }) => !isEphemeral(part))
      for (const { part, check, field } of left) {
        assert.ok(part !== null && /^capabilities/.test(check) && field.endsWith('.add'), `left: ${check} of ${part}`)
        assert.ok(
          observed[part]?.add.some((one) => one !== 'NET_BIND_SERVICE'),
          `${part} does not use any`,
        )
      }
      assert.deepEqual(after.spec.ephemeralContainers, before.spec.ephemeralContainers)
      const failed = new Set(evaluate(before).failures.map(({ part }) => part))
      for (const list of ['containers', 'initContainers'] as const)
        before.spec[list].forEach((container, place) => {
          const changed = after.spec[list][place]!
          const seen = observed[container.name]
          const { add, drop = [] } = capabilitiesIn(container)
          const isOther = seen && !(drop.includes('ALL') && isSame(add, seen.add))
          if (!failed.has(container.name) && !isOther) assert.deepEqual(changed, container)
          if (seen) assert.ok(isSame(capabilitiesIn(changed).add, seen.add))
        })
      if (!before.isPodKnown)
        assert.ok(Object.keys(patch ?? {}).every((key) => ['containers', 'initContainers'].includes(key)))
      assert.equal(judged(rowsOf(after), { kind, capabilities }).recommendation, null)
    }),
    { numRuns: RUNS },
  )
})

/** Rows as agents would report a manifest. */
function rowsOf({ spec, isPodKnown }: Manifest): InventoryRow[] {
  const { containers, initContainers, ephemeralContainers, securityContext, ...pod } = spec
  const lists = { regular: containers, init: initContainers, ephemeral: ephemeralContainers } as const
  const rows = (['regular', 'init', 'ephemeral'] as const).flatMap((kind) =>
    lists[kind].map((one) => row(one.name, reported(one.securityContext), { kind })),
  )
  const known = { ...pod, securityContext: reported((securityContext ?? {}) as Fields) }
  return inPod(isPodKnown ? known : {}, ...rows)
}

test('a stored snapshot fails what the workload failed', () => {
  fc.assert(
    fc.property(rows, (rows) => {
      const { findings: _, patch: __, ...it } = judged(rows)
      const again = rejudge(JSON.parse(JSON.stringify(podSecuritySnapshot(it))))
      assert.equal(again.level, it.level)
      const checks = (failing: readonly { check: string }[]) => [...new Set(failing.map(({ check }) => check))]
      assert.deepEqual(again.pod?.failing ?? [], checks(it.pod.failing))
      const parts = it.containers.map(({ name, level, failing }) => [name, level, checks(failing)])
      const againParts = [...again.containers].map(([name, { level, failing }]) => [name, level, failing])
      assert.deepEqual(againParts.sort(), parts.sort())
    }),
    { numRuns: RUNS },
  )
})
