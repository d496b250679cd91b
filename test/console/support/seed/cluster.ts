/** The model of the seeded cluster: nodes, workloads, their pods and images. It is the same in every run. */
import { createHash } from 'node:crypto'
import { ROLES, type Role, TEAMS } from './names.ts'

const ZONES = ['a', 'b', 'c']
const HASH_CHARS = 'bcdfghjklmnpqrstvwxz2456789'
const FIRST_NETWORK = 64
const NETWORKS = 256
const FIRST_PLACE = 2
/** Pods per network. A node with more pods has several networks, NEXT_NETWORK apart. */
const PLACES = 250
const NEXT_NETWORK = 40
/** One in this many pods has an agent that does not record all syscalls. */
const LESS_CAPTURED = 40

export const digestOf = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`
const numberOf = (text: string) => createHash('sha256').update(text).digest().readUInt32BE(0)

/** A number below `below` that is derived from a text, so that all runs are equal. */
export const pick = (text: string, below: number) => numberOf(text) % below

export const nodeName = (i: number) => `worker-eu-1${ZONES[i % ZONES.length]}-${String(i).padStart(2, '0')}`

export interface Image {
  readonly digest: string
  readonly repository: string
  readonly tag: string
}

export const imageOf = (repository: string, tag: string): Image => ({
  ...{ digest: digestOf(`${repository}:${tag}`), repository: `registry.acme.example/${repository}`, tag },
})

/** Images that several teams run, by role. */
const SHARED: Readonly<Record<string, Image>> = {
  cache: imageOf('library/redis', '7.2.4'),
  db: imageOf('library/postgres', '16.4'),
  exporter: imageOf('library/postgres-exporter', '0.15.0'),
  gateway: imageOf('library/envoy', '1.30.2'),
}

export interface Pod {
  readonly name: string
  readonly uid: string
  readonly ip: string
  readonly node: string
}

export interface Workload {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly thing: string
  readonly role: Role
  readonly container: string
  readonly image: Image
  readonly level: string
  readonly pods: readonly Pod[]
}

function suffix(text: string, chars: number): string {
  let rest = numberOf(text)
  let made = ''
  for (let i = 0; i < chars; i++) {
    made += HASH_CHARS[rest % HASH_CHARS.length]
    rest = Math.floor(rest / HASH_CHARS.length) + i * 7
  }
  return made
}

export function podName(kind: string, name: string, i: number): string {
  if (kind === 'StatefulSet') return `${name}-${i}`
  if (kind === 'CronJob') return `${name}-29${400_000 + pick(name, 99_999)}-${suffix(`${name}/${i}`, 5)}`
  if (kind === 'DaemonSet') return `${name}-${suffix(`${name}/${i}`, 5)}`
  return `${name}-${suffix(name, 9)}-${suffix(`${name}/${i}`, 5)}`
}

/** A uid in the format of Kubernetes. */
export function uidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** Places pods on the nodes in turn. Each node has its own pod network. */
export class Placement {
  readonly #nodes: number
  readonly #placed = new Map<number, number>()
  #next = 0

  constructor(nodes: number) {
    this.#nodes = nodes
  }

  pod(name: string, node = this.#next % this.#nodes): Pod {
    this.#next++
    const placed = this.#placed.get(node) ?? 0
    this.#placed.set(node, placed + 1)
    const first = FIRST_NETWORK + Math.floor(node / NETWORKS) + NEXT_NETWORK * Math.floor(placed / PLACES)
    const ip = `10.${first}.${node % NETWORKS}.${FIRST_PLACE + (placed % PLACES)}`
    return { name, uid: uidOf(name), ip, node: nodeName(node) }
  }
}

/** The workloads of all teams, in the nth region. */
export const makeWorkloads = (placement: Placement, copy = 0): Workload[] =>
  Object.entries(TEAMS).flatMap(([team, things]) =>
    things.flatMap((thing) => ROLES.map((role) => makeWorkload(placement, team, thing, role, copy))),
  )

/** Workloads with exactly this many pods, in as many regions as that takes. */
export function makeManyWorkloads(placement: Placement, pods: number): Workload[] {
  const made: Workload[] = []
  let left = pods
  for (let copy = 0; left > 0; copy++) {
    if (copy === REGIONS.length) throw new Error(`no names for so many pods: ${pods}`)
    for (const workload of makeWorkloads(placement, copy)) {
      if (left > 0) made.push({ ...workload, pods: workload.pods.slice(0, left) })
      left -= workload.pods.length
    }
  }
  return made
}

/** Copies are regions. */
const REGIONS = ['', 'us', 'ap', 'sa', 'af', 'me', 'ca', 'au', 'jp']

/** A workload in the nth region; `nodeOf` says where its pods run, by default in turn. */
export function makeWorkload(
  placement: Placement,
  team: string,
  thing: string,
  role: Role,
  copy = 0,
  nodeOf: (i: number) => number | undefined = () => undefined,
): Workload {
  const region = REGIONS[copy]!
  const namespace = region === '' ? team : `${team}-${region}`
  const name = [thing, role.name, region].filter((part) => part !== '').join('-')
  const minor = pick(thing, 60)
  return {
    ...{ namespace, kind: role.kind, name, thing, role, container: role.name },
    image: SHARED[role.name] ?? imageOf(`${team}/${thing}`, `v2.${minor}.${pick(`${thing}-patch`, 9)}`),
    level: pick(name, LESS_CAPTURED) === 0 ? 'low' : 'full',
    pods: Array.from({ length: role.pods }, (_, i) => placement.pod(podName(role.kind, name, i), nodeOf(i))),
  }
}

/** The previous image of the workloads of a thing. */
export const earlierImage = ({ image }: Workload): Image => {
  const repository = image.repository.slice(image.repository.indexOf('/') + 1)
  return imageOf(
    repository,
    image.tag.replace(/\.\d+$/, '') === image.tag ? `${image.tag}-previous` : `${image.tag}-rc1`,
  )
}
