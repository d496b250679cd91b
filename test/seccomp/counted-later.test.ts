/** Denials that are attributed to a workload only after they were posted are counted for it then, exactly once. */
import assert from 'node:assert/strict'
import { beforeEach, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { seccompDenialRetention } from '../../jobs/seccomp-denial-retention.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { watchAttributed } from '../../lib/seccomp/denials/index.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { podPost } from '../support/records.ts'
import { until } from '../support/until.ts'
import { countedBy, denial, take, unique } from './drains.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian' }, app)
type App = typeof app

beforeEach(() => app.sql`truncate seccomp_denial, seccomp_denial_node, pod, pod_address`)

/** Another replica, with a counter of its own. */
const replica = ({ db, deps: { config, log } }: App) => buildDeps({ config, db, log })
const know = async (target: App, pod_name: string, workload_name: string, pod_namespace = 'shop') => {
  const pod = podPost({ pod_name, pod_namespace, workload_kind: 'Deployment', workload_name })
  assert.equal((await target.post('/pod/spec', pod)).status, 200)
}
const attribute = async (target: App) => {
  const { config, db, log } = target.deps
  await seccompDenialRetention.run({ config, db, log, signal: new AbortController().signal } as Parameters<
    typeof seccompDenialRetention.run
  >[0])
}

test('denials attributed by a pass are counted then, once, by workload and action', async () => {
  for (const target of [app, products]) {
    const [pod, workload, other] = [unique('late'), unique('web'), unique('late')]
    const sent = (fields: object) => denial({ podName: pod, podUid: pod, ...fields })
    await take(target, [
      sent({ count: 5 }),
      sent({ count: 2, syscall: 'bpf' }),
      sent({ count: 7, action: 'SCMP_ACT_LOG' }),
    ])
    await take(target, [sent({ count: 1 }), denial({ podName: other, count: 9 })])
    const counted = () =>
      Object.fromEntries(Object.entries(countedBy(target.deps)).filter(([key]) => key.includes(workload)))
    await know(target, pod, workload)
    await target.deps.denials.countAttributed()
    assert.deepEqual(counted(), {}, 'nobody has attributed them yet')
    await attribute(target)
    for (let n = 0; n < 2; n++) {
      await target.deps.denials.countAttributed()
      const key = `shop Deployment ${workload}`
      assert.deepEqual(
        counted(),
        target === app ? { [key]: 15 } : { [`${key} SCMP_ACT_ERRNO`]: 8, [`${key} SCMP_ACT_LOG`]: 7 },
      )
    }
    await take(target, [sent({ count: 4 })])
    await target.deps.denials.countAttributed()
    assert.equal(
      Object.values(counted()).reduce((sum, count) => sum + count),
      19,
    )
    assert.equal(JSON.stringify(countedBy(target.deps)).includes(other), false)
  }
})

test('denials attributed by a later drain are counted with all earlier ones', async () => {
  const [pod, workload] = [unique('late'), unique('web')]
  const sent = (count: number) => denial({ podName: pod, podUid: pod, count })
  const counted = () => countedBy(app.deps)[`shop Deployment ${workload}`]
  await take(app, [sent(5)])
  await take(app, [sent(6)])
  await know(app, pod, workload)
  await take(app, [sent(3)])
  assert.equal(counted(), 3)
  await app.deps.denials.countAttributed()
  assert.equal(counted(), 14)
  await attribute(app)
  await app.deps.denials.countAttributed()
  assert.equal(counted(), 14)
})

test('each denial is counted by one of several replicas, whichever attributed it', async () => {
  const replicas = [app.deps, replica(app), replica(app)]
  const pods = Array.from({ length: 40 }, () => unique('late'))
  const workload = unique('web')
  for (const pod of pods) {
    await take(app, [denial({ podName: pod, podUid: pod, count: 10 })])
    await know(app, pod, workload)
  }
  await attribute(app)
  await Promise.all([...replicas, ...replicas].map(({ denials }) => denials.countAttributed()))
  await Promise.all(replicas.map(({ denials }) => denials.countAttributed()))
  const key = `shop Deployment ${workload}`
  assert.equal(
    replicas.reduce((sum, deps) => sum + (countedBy(deps)[key] ?? 0), 0),
    400,
  )
})

test('more denials than one statement attributes are all counted', async () => {
  const workload = unique('many')
  await app.sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, uncounted, first_seen, last_seen)
    select 'uid-' || n, 'pod', 'shop', 'Deployment', ${workload}, 's', 'a', 2, 2, now(), now() from generate_series(1, 12001) n`
  await app.deps.denials.countAttributed()
  assert.equal(countedBy(app.deps)[`shop Deployment ${workload}`], 24_002)
})

test('a replica looks for them at intervals until it is stopped', async (t: TestContext) => {
  const [pod, workload] = [unique('late'), unique('web')]
  const deps = replica(app)
  const { stop } = watchAttributed({ denials: deps.denials, log: deps.log, everyMs: 5 })
  t.after(stop)
  for (const total of [3, 6]) {
    const one = `${pod}-${total}`
    await take(app, [denial({ podName: one, podUid: one, count: 3 })])
    await know(app, one, workload)
    await attribute(app)
    await until('they are counted', () => countedBy(deps)[`shop Deployment ${workload}`] === total)
  }
})

test('in any order of events all denials of known pods are finally counted once', async () => {
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ pod: fc.nat(2), count: fc.integer({ min: 1, max: 9 }), replica: fc.nat(1) }) },
    { weight: 2, arbitrary: fc.record({ known: fc.nat(2) }) },
    { weight: 1, arbitrary: fc.constantFrom('attribute' as const, 'count' as const) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const run = unique('run')
      const replicas = [replica(app), replica(app)]
      const sent = [0, 0, 0]
      const isKnown = [false, false, false]
      for (const one of [...steps, 'attribute' as const, 'count' as const]) {
        if (one === 'attribute') await attribute(app)
        else if (one === 'count') for (const { denials } of replicas) await denials.countAttributed()
        else if ('known' in one) {
          isKnown[one.known] = true
          await know(app, `${run}-${one.known}`, run)
        } else {
          sent[one.pod]! += one.count
          const podName = `${run}-${one.pod}`
          const drained = {
            node: `n-${one.replica}`,
            denials: [denial({ podName, podUid: podName, count: one.count })],
          }
          await replicas[one.replica]!.denials.take(drained as never)
        }
      }
      const counted = replicas.reduce((sum, deps) => sum + (countedBy(deps)[`shop Deployment ${run}`] ?? 0), 0)
      assert.equal(
        counted,
        sent.reduce((sum, count, n) => sum + (isKnown[n] ? count : 0), 0),
      )
    }),
    { numRuns: depth(8, 40) },
  )
})
