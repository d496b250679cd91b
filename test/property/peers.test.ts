import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'

const app = await startApp()

// ---- Generated steps: few values of each kind, so that addresses change hands ---------------------------------------

/** Addresses by number, in canonical form and two others. Each run has its own, so tables need not be emptied. */
const ADDRESSES = 4
const prefixOf = (run: number) => `10.${run >> 8}.${run & 255}`
const hex = (n: number) => n.toString(16)
function spellings(run: number, address: number): [canonical: string, ...others: string[]] {
  const four = `${prefixOf(run)}.${address}`
  if (address < 2)
    return [four, `::ffff:${four}`, `::FFFF:${hex(0x0a00 + (run >> 8))}:${hex(((run & 255) << 8) + address)}`]
  const six = `fd00:${hex(run + 1)}::${hex(0xa0 + address)}`
  return [six, six.toUpperCase(), six.replace('::', ':0:0:0:0::')]
}
const NAMES = ['a', 'b', 'c']
const MOMENTS = 6
/** Moments are one microsecond apart and cross a full second. */
const timeOf = (moment: number) =>
  moment < 3 ? `2024-05-01T09:59:59.99999${7 + moment}` : `2024-05-01T10:00:00.00000${moment - 3}`

const name = fc.constantFrom(...NAMES)
const moment = fc.nat(MOMENTS - 1)
const address = fc.nat(ADDRESSES - 1)
const spelled = fc.record({ address, spelling: fc.nat(2) })
const option = <T>(one: fc.Arbitrary<T>) => fc.option(one, { freq: 3 })
const namespace = option(fc.constantFrom('x', 'y'))
const sender: fc.Arbitrary<Sender> = fc.record({ name, namespace })

type Spelled = { address: number; spelling: number }
type Sender = { name: string; namespace: string | null }
interface PodPost {
  kind: 'pod'
  name: string
  ip: Spelled
  others: Spelled[]
  time: number
  dead: boolean
  startedAt: number | null
  hostNetwork: boolean | null
  node: string
  manifest: {
    hostNetwork: boolean | null
    uid: string | null
    startTime: number | null
    owner: 'ReplicaSet' | 'Node' | null
  } | null
  namespace: string | null
  workload: string | null
}
type Op =
  | PodPost
  | { kind: 'mark'; name: string; ip: Spelled | null }
  | { kind: 'service'; ip: Spelled; uid: string | null; namespace: string | null }
  | { kind: 'flow'; from: Sender; ip: Spelled; at: number; batch: boolean }
  | { kind: 'at'; ip: Spelled; at: number }

const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('pod' as const),
      name,
      ip: spelled,
      others: fc.array(spelled, { maxLength: 2 }),
      time: moment,
      dead: fc.boolean(),
      startedAt: option(moment),
      hostNetwork: fc.option(fc.boolean(), { freq: 2 }),
      manifest: option(
        fc.record({
          hostNetwork: fc.option(fc.boolean(), { freq: 2 }),
          uid: option(fc.constantFrom('', 'u1', 'u2')),
          startTime: option(moment),
          owner: fc.constantFrom('ReplicaSet' as const, 'Node' as const, null),
        }),
      ),
      node: fc.constantFrom('node-a', 'node-b'),
      namespace,
      workload: option(fc.constantFrom('w1', 'w2')),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('mark' as const), name, ip: option(spelled) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('service' as const),
      ip: spelled,
      uid: option(fc.constant('s1')),
      namespace: option(fc.constant('z')),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('flow' as const),
      from: sender,
      ip: spelled,
      at: moment,
      batch: fc.boolean(),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('at' as const), ip: spelled, at: moment }) },
)

// ---- The model: attribution (docs/contract.md#attribution) on two maps ----------------------------------------------

interface Pod {
  name: string
  primary: number
  addresses: Set<number>
  time: number
  dead: boolean
  startedAt: number | null
  hostNetwork: boolean | null
  uid: string | null
  namespace: string | null
  workload: string | null
  hasOwner: boolean | null
}
interface Service {
  uid: string | null
  namespace: string | null
}

class Model {
  readonly pods = new Map<string, Pod>()
  readonly services = new Map<number, Service>()

  post(p: PodPost): void {
    const stored = this.pods.get(p.name)
    // Another uid is another pod.
    const isOther = stored?.uid && p.manifest?.uid && stored.uid !== p.manifest.uid
    const old = isOther ? undefined : stored
    const hostNetwork = p.hostNetwork ?? (p.manifest ? p.manifest.hostNetwork === true : null)
    const startedAt = p.startedAt ?? p.manifest?.startTime ?? null
    this.pods.set(p.name, {
      name: p.name,
      primary: p.ip.address,
      addresses: new Set([p.ip, ...p.others].map((one) => one.address)),
      time: p.time,
      dead: p.dead,
      startedAt: startedAt ?? old?.startedAt ?? null,
      hostNetwork: hostNetwork ?? old?.hostNetwork ?? null,
      uid: p.manifest ? p.manifest.uid || null : (old?.uid ?? null),
      namespace: p.namespace ?? old?.namespace ?? null,
      workload: p.workload ?? old?.workload ?? null,
      hasOwner: p.manifest ? (p.manifest.uid ? p.manifest.owner === 'ReplicaSet' : null) : (old?.hasOwner ?? null),
    })
  }

  mark(marked: string, ip: number | null): void {
    const pod = this.pods.get(marked)
    if (pod && (ip === null || pod.primary === ip)) pod.dead = true
  }

  service(ip: number, sent: Service): void {
    const old = this.services.get(ip)
    this.services.set(ip, { uid: sent.uid, namespace: sent.namespace ?? old?.namespace ?? null })
  }

  holder(ip: number, at: number): Pod | null {
    const candidates = [...this.pods.values()].filter(
      (pod) => pod.addresses.has(ip) && pod.startedAt !== null && pod.startedAt <= at && (!pod.dead || pod.time >= at),
    )
    const [best] = candidates.sort(
      (a, b) =>
        Number(a.dead) - Number(b.dead) || b.startedAt! - a.startedAt! || b.time - a.time || (a.name < b.name ? -1 : 1),
    )
    return best ?? null
  }

  /** The stamps of the pod that sent a flow. A pod without an owner is its own workload. */
  sender(run: number, { name, namespace }: Sender, at: number) {
    const pod = this.pods.get(name)
    if (!pod || namespace === null || pod.namespace !== namespace || pod.startedAt === null || pod.startedAt > at)
      return { pod_workload_kind: null, pod_workload_name: null }
    const isBare = pod.workload === null && pod.hasOwner === false
    return {
      pod_workload_kind: pod.workload === null ? (isBare ? 'Pod' : null) : 'Deployment',
      pod_workload_name: pod.workload ?? (isBare ? `${run}-${name}` : null),
    }
  }

  peer(ip: number, at: number) {
    const pod = this.holder(ip, at)
    const service = this.services.get(ip)
    if (pod)
      return {
        peer_kind: pod.hostNetwork ? 'node' : 'pod',
        peer_namespace: pod.namespace,
        peer_name: pod.name,
        peer_uid: pod.uid,
        peer_workload_kind: pod.workload && 'Deployment',
        peer_workload_name: pod.workload,
      }
    return {
      peer_kind: service ? 'service' : null,
      peer_namespace: service?.namespace ?? null,
      peer_name: service ? 'svc' : null,
      peer_uid: service?.uid ?? null,
      peer_workload_kind: null,
      peer_workload_name: null,
    }
  }
}

// ---- The same steps on the broker -----------------------------------------------------------------------------------

let runs = 0
let flows = 0

const spell = (run: number, { address: at, spelling }: Spelled) => spellings(run, at)[spelling]!

async function send(path: string, body: unknown) {
  const answer = await app.post(path, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

function postPod(run: number, p: PodPost) {
  const { manifest } = p
  return send('/pod/spec', {
    pod_name: `${run}-${p.name}`,
    pod_ip: spell(run, p.ip),
    pod_ips: p.others.map((one) => spell(run, one)),
    node_name: p.node,
    time_stamp: timeOf(p.time),
    is_dead: p.dead,
    started_at: p.startedAt === null ? null : timeOf(p.startedAt),
    host_network: p.hostNetwork,
    pod_namespace: p.namespace,
    workload_kind: p.workload && 'Deployment',
    workload_name: p.workload,
    pod_obj: manifest && {
      metadata: {
        uid: manifest.uid,
        ...(manifest.owner && { ownerReferences: [{ kind: manifest.owner, controller: true }] }),
      },
      spec: { hostNetwork: manifest.hostNetwork, containers: [] },
      status: { startTime: manifest.startTime === null ? null : `${timeOf(manifest.startTime)}Z` },
    },
  })
}

/** Posts the flow and returns its stamps, without the time of the peer's. */
async function stampsOf(run: number, one: Extract<Op, { kind: 'flow' }>): Promise<Record<string, string | null>> {
  const flow = {
    uuid: `flow-${flows++}`,
    pod_name: `${run}-${one.from.name}`,
    pod_namespace: one.from.namespace,
    pod_ip: `observed ${flows}`,
    pod_port: '0',
    traffic_type: 'EGRESS',
    traffic_in_out_ip: spell(run, one.ip),
    traffic_in_out_port: '443',
    decision: 'ALLOW',
    time_stamp: timeOf(one.at),
  }
  if (one.batch) assert.equal(await send('/pod/traffic/batch', [flow]), 1)
  else await send('/pod/traffic', flow)
  const row = (await app.get(`/pod/traffic/${flow.pod_name}`)).json.find(
    ({ uuid }: { uuid: string }) => uuid === flow.uuid,
  )
  assert.equal(row.peer_resolved_at === null, row.peer_kind === null)
  const shown = Object.entries<string | null>(row).filter(([key]) => key.startsWith('peer_'))
  const { peer_resolved_at: _, ...stamps } = Object.fromEntries(shown)
  const [stored] = await app.sql<Record<string, string | null>[]>`
    select pod_workload_kind, pod_workload_name from traffic where uuid = ${flow.uuid}`
  return { ...stamps, ...stored }
}

const expectedStamp = (run: number, model: Model, ip: number, at: number) => {
  const peer = model.peer(ip, at)
  const isPod = peer.peer_kind === 'pod' || peer.peer_kind === 'node'
  return isPod ? { ...peer, peer_name: `${run}-${peer.peer_name}` } : peer
}

async function holderAt(run: number, ip: Spelled, at: string): Promise<string | null> {
  const answer = await app.get(`/pod/ip/${encodeURIComponent(spell(run, ip))}?at=${encodeURIComponent(at)}`)
  if (answer.status === 404) return null
  assert.equal(answer.status, 200, answer.text)
  return answer.json.pod_name
}

async function apply(run: number, model: Model, one: Op): Promise<void> {
  if (one.kind === 'pod') {
    model.post(one)
    await postPod(run, one)
  } else if (one.kind === 'mark') {
    model.mark(one.name, one.ip?.address ?? null)
    await send('/pod/mark_dead', { pod_name: `${run}-${one.name}`, pod_ip: one.ip && spell(run, one.ip) })
  } else if (one.kind === 'service') {
    model.service(one.ip.address, one)
    const service_spec = { metadata: { uid: one.uid } }
    const svc_ip = spell(run, one.ip)
    await send('/svc/spec', {
      svc_ip,
      svc_name: 'svc',
      svc_namespace: one.namespace,
      service_spec,
      time_stamp: timeOf(0),
    })
  } else if (one.kind === 'flow') {
    const expected = { ...expectedStamp(run, model, one.ip.address, one.at), ...model.sender(run, one.from, one.at) }
    assert.deepEqual(await stampsOf(run, one), expected)
  } else {
    const holder = model.holder(one.ip.address, one.at)
    assert.equal(await holderAt(run, one.ip, timeOf(one.at)), holder && `${run}-${holder.name}`)
  }
}

test('in any history flows are stamped with their pod and the holder of the address at their time, as the look-up says', {
  timeout: 900_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 5, maxLength: 30 }), async (ops) => {
      const run = runs++
      const model = new Model()
      for (const one of ops) await apply(run, model, one)
    }),
    { numRuns: depth(25, 200) },
  )
})

test('after any history the stamps and look-ups of every address at every time are as in the model', {
  timeout: 900_000,
}, async () => {
  const changes = op.filter(({ kind }) => kind === 'pod' || kind === 'mark' || kind === 'service')
  await fc.assert(
    fc.asyncProperty(fc.array(changes, { minLength: 3, maxLength: 15 }), async (ops) => {
      const run = runs++
      const model = new Model()
      for (const one of ops) await apply(run, model, one)
      const questions = Array.from({ length: ADDRESSES * MOMENTS }, (_, i) => ({
        address: i % ADDRESSES,
        at: Math.floor(i / ADDRESSES),
      }))
      const body = questions.map(({ address: ip, at }) => ({
        uuid: `flow-${flows++}`,
        pod_name: `${run}-observed`,
        pod_ip: `${prefixOf(run)}.250`,
        pod_port: '0',
        traffic_type: 'EGRESS',
        traffic_in_out_ip: spellings(run, ip)[0],
        traffic_in_out_port: String(at),
        decision: 'ALLOW',
        time_stamp: timeOf(at),
      }))
      assert.equal(await send('/pod/traffic/batch', body), body.length)
      const rows = new Map<string, Record<string, unknown>>()
      for (const row of await app.sql`select * from traffic where pod_name = ${`${run}-observed`}`)
        rows.set(row.uuid, row)
      for (const [i, { address: ip, at }] of questions.entries()) {
        const row = rows.get(body[i]!.uuid)!
        for (const [key, value] of Object.entries(expectedStamp(run, model, ip, at)))
          assert.equal(row[key], value, `${key} of ${ip} at ${at}`)
      }
      const found = await Promise.all(
        questions.map(({ address: ip, at }) => holderAt(run, { address: ip, spelling: at % 3 }, timeOf(at))),
      )
      for (const [i, { address: ip, at }] of questions.entries()) {
        const holder = model.holder(ip, at)
        assert.equal(found[i], holder && `${run}-${holder.name}`)
      }
    }),
    { numRuns: depth(16, 80) },
  )
})
