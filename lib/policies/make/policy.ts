/** A policy for a workload that allows what was seen (docs/contract.md#network-policies). */
import { HttpError } from '../../errors.ts'
import { Slice } from '../../event-loop/slices.ts'
import { captureHeaders } from '../../seccomp/partial-capture.ts'
import { type Manifest, quoted } from '../../text/yaml.ts'
import { parseNaive } from '../../time/timestamp.ts'
import type { Connection, Facts, Watched, Workload } from '../facts.ts'
import type { GenerateQuery } from '../generate-query.ts'
import type { DirectionName } from '../match.ts'
import { present, workloadText } from '../pods.ts'
import { Topology } from '../topology.ts'
import { resolverProtocols, usualResolver } from './dns.ts'
import { invalidKeys, selectionOf } from './labels.ts'
import { type Made, manifestOf } from './manifests.ts'
import { nameOf } from './name.ts'
import { Notes } from './notes.ts'
import { connectionsOf, isEndOf, observe } from './observed.ts'
import { noteOtherPorts } from './other-ports.ts'
import { endText, towards } from './peers.ts'
import { pruned } from './prune.ts'
import { Reach } from './reach.ts'
import { type MadeRule, rulesOf } from './rules.ts'
import { listed, noteWider, portText, widened } from './widen.ts'

/** Kinds of dropped flows that are named at most. */
const MAX_DROPPED = 20
const DAY_MS = 86_400_000

export type MakeOptions = Omit<GenerateQuery, 'since'> & {
  /** The begin of the window, naive UTC; null where it has none. */
  readonly since: string | null
  /** The clock of the database, naive UTC. */
  readonly now: string
  /** Of annotations. */
  readonly prefix: string
}

/** A policy, and what is to be said of it. */
export interface MadePolicy {
  readonly workload: Workload
  readonly manifest: Manifest
  /** Why the policy may cut off something that the workload needs. */
  readonly gaps: readonly string[]
  /** Connections that are left out, and rules that are wider than what was seen. */
  readonly notes: readonly string[]
  /** The rules in words, and the directions without any. */
  readonly rules: readonly string[]
  /** From when on the workload was observed, naive UTC. */
  readonly observedSince: string | null
}

export const directionsOf = ({ direction }: Pick<MakeOptions, 'direction'>): readonly DirectionName[] =>
  direction === 'both' ? ['ingress', 'egress'] : [direction]

/** Makes the policies of workloads from the same facts. */
export class PolicyMaker {
  readonly #facts: Facts
  readonly #options: MakeOptions
  readonly #topology: Topology
  readonly #reach: Reach

  constructor(facts: Facts, options: MakeOptions) {
    this.#facts = facts
    this.#options = options
    this.#topology = new Topology(facts)
    this.#reach = new Reach(facts.services, this.#topology.pods, options)
  }

  /** @throws HttpError 409 if no labels select the workload alone */
  async make(workload: Workload, watched: Watched, slice = new Slice()): Promise<MadePolicy> {
    const { format, prefix } = this.#options
    const notes = new Notes()
    const selector = this.#selectorOf(workload, notes)
    const rules: Partial<Record<DirectionName, MadeRule[]>> = {}
    const seen = this.#seenOf(workload)
    for (const direction of directionsOf(this.#options))
      rules[direction] = await this.#rulesOf(seen[direction], direction, notes, slice)
    const all = [...seen.ingress, ...seen.egress]
    const observedSince = this.#observedSince(workload, all, watched)
    const gaps = this.#gapsOf(workload, watched, all, observedSince)
    const made: Made = {
      ...{ name: nameOf(workload), namespace: workload.namespace, selector, rules },
      annotations: {
        [`${prefix}/capture-complete`]: String(gaps.length === 0),
        ...(gaps.length === 0
          ? {}
          : { [`${prefix}/capture-warning`]: `What was seen is not complete: ${gaps.join('; ')}.` }),
        [`${prefix}/source-workload`]: workloadText(workload),
      },
    }
    return {
      ...{ workload, gaps, observedSince },
      manifest: manifestOf(format, made),
      notes: [...notes.all(), ...this.#notesOf(directionsOf(this.#options).flatMap((direction) => seen[direction]))],
      rules: directionsOf(this.#options).flatMap((direction) => rulesText(rules[direction]!, direction)),
    }
  }

  #seenOf(workload: Workload): Record<DirectionName, Connection[]> {
    const of = (direction: DirectionName) => connectionsOf(workload, this.#facts.connections, direction, this.#topology)
    return { ingress: of('ingress'), egress: of('egress') }
  }

  async #rulesOf(
    connections: readonly Connection[],
    direction: DirectionName,
    notes: Notes,
    slice: Slice,
  ): Promise<MadeRule[]> {
    const { format } = this.#options
    const found = await observe(this.#reach, connections, direction, notes, slice)
    const observed = widened(found, direction, notes)
    const pairs = await pruned(observed, direction, this.#topology, format, slice)
    noteWider(pairs, direction, notes)
    noteOtherPorts(connections, direction, this.#topology, notes)
    const seen = resolverProtocols(observed, this.#topology.pods)
    // A flow of UDP is not stored where one of TCP with the same address and port came before it.
    if (direction === 'ingress' || seen.has('UDP')) return rulesOf(pairs)
    const over = seen.size > 0 ? ' over UDP' : ''
    notes.add('dns', `egress to a resolver of the cluster was not seen${over}: the usual rule for it is added`)
    return rulesOf([...pairs, ...usualResolver(this.#facts.services)])
  }

  #selectorOf(workload: Workload, notes: Notes) {
    const { pods } = this.#topology
    const selection = selectionOf(workload, pods, this.#options.format)
    const text = quoted(workloadText(workload))
    const invalid = invalidKeys(pods.of(workload))
    if (invalid.length > 0)
      notes.add(
        'own',
        `labels of the workload that Kubernetes refuses are not used: ${listed(invalid.map(quoted).sort())}`,
      )
    if (selection === null)
      throw unselectable(`no labels of ${text} are known that do not change with a revision or a pod`)
    if (selection.others.length === 0) return selection.labels
    const others = listed(selection.others.map((one) => quoted(workloadText(one))))
    if (selection.isPosted) notes.add('own', `the selector of the workload also selects the pods of ${others}`)
    else throw unselectable(`no labels select ${text} alone: its pods share them with those of ${others}`)
    return selection.labels
  }

  /** The service that a connection reached may be older than the workload behind it. */
  #observedSince(workload: Workload, seen: readonly Connection[], { since }: Watched): string | null {
    const isOwn = ({ from, to }: Connection) => isEndOf(workload, from) || isEndOf(workload, to)
    const own = [...seen.filter(isOwn).map(({ firstSeenAt }) => firstSeenAt), ...(since === null ? [] : [since])]
    const [first = null] = (own.length > 0 ? own : seen.map(({ firstSeenAt }) => firstSeenAt)).sort()
    const from = this.#options.since
    return first !== null && from !== null && first < from ? from : first
  }

  #gapsOf(workload: Workload, watched: Watched, seen: readonly Connection[], observedSince: string | null): string[] {
    const { min_days: minDays, now } = this.#options
    const isHostNetwork = present(this.#topology.pods.of(workload)).some((one) => one.isHostNetwork === true)
    const isLate = observedSince !== null && millisOf(now) - millisOf(observedSince) < minDays * DAY_MS
    return [
      ...(seen.some(({ isDropped }) => !isDropped) ? [] : ['nothing was observed']),
      ...(isLate ? [`observed since ${observedSince}, which is less than ${minDays} days`] : []),
      ...(watched.silentNodes.length === 0
        ? []
        : [`nodes of its pods are silent: ${listed(watched.silentNodes.map(quoted))}`]),
      ...(isHostNetwork ? ['it uses the host network, where most network plugins apply no policy'] : []),
    ]
  }

  /** Connections that nobody answered, and the window. */
  #notesOf(seen: readonly Connection[]): string[] {
    const keyOf = (connection: Connection) => {
      const { to, port } = this.#topology.behindService(connection)
      const ends = [this.#topology.keyOf(connection.from), this.#topology.keyOf(to)]
      return JSON.stringify([...ends, port, connection.protocol.toUpperCase()])
    }
    const answered = new Set(seen.filter(({ isDropped }) => !isDropped).map(keyOf))
    const dropped = seen
      .filter(({ isDropped }) => isDropped)
      .map((one) => {
        const says = answered.has(keyOf(one)) ? 'dropped at times, but allowed' : 'dropped, so not allowed'
        return `${says}: ${endText(one.from)} to ${endText(one.to)} on ${quoted(one.port)}/${quoted(one.protocol)}`
      })
    const distinct = [...new Set(dropped)].sort()
    const more = distinct.length - MAX_DROPPED
    return [
      ...distinct.slice(0, MAX_DROPPED),
      ...(more > 0 ? [`dropped: +${more} more`] : []),
      ...(this.#options.since === null
        ? []
        : [
            `made from connections that were new since ${this.#options.since}: a pod does not report a connection ` +
              'again, so older ones that are still used may be missing',
          ]),
    ]
  }
}

const unselectable = (why: string) =>
  new HttpError(409, `refused: ${why}\n`, captureHeaders({ level: 'unknown', complete: false }))

const millisOf = (naive: string): number => Date.parse(`${parseNaive(naive)}Z`)

const rulesText = (rules: readonly MadeRule[], direction: DirectionName): string[] =>
  rules.length === 0
    ? [`Allows no ${direction}: none was seen, which does not say that none is needed`]
    : rules.map(({ names, ports }) => `Allows ${towards(direction)} ${listed(names)} on ${listed(ports.map(portText))}`)
