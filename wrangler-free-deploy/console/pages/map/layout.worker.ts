/** Computes the layout of the map in a worker, so that the page stays responsive. */
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type Simulation,
  type SimulationLinkDatum,
  type SimulationNodeDatum,
} from 'd3-force'
import type { FromLayout, StartLayout, ToLayout } from './layout-messages.ts'

const STEP_MS = 16
/** Small graphs take several steps between two messages. */
const STEP_BUDGET_MS = 8
/** The first positions of a new graph are sent after this time, when most overlaps are resolved. */
const FIRST_BUDGET_MS = 120
/** Fewer steps than the default of 300, since each takes some milliseconds. */
const ALPHA_DECAY = 0.04
const HEAT_OF_DRAG = 0.15
const GAP_PX = 12
const LINK_PX = 70

const GROUP_STRENGTH = 0.25

type Body = SimulationNodeDatum & { readonly radius: number; readonly group: number }
type Link = SimulationLinkDatum<Body>

let simulation: Simulation<Body, Link> | null = null
let generation = 0
let onlyFinal = false
let timer: ReturnType<typeof setTimeout> | undefined

self.onmessage = ({ data }: MessageEvent<ToLayout>) => {
  if (data.type === 'start') start(data)
  else if (data.type === 'drag') drag(data.index, data.x, data.y)
  else release(data.index)
}

function start(given: StartLayout): void {
  generation = given.generation
  onlyFinal = given.onlyFinal
  const bodies = Array.from(given.radii, (radius, i): Body => {
    return { radius, group: given.groups[i]!, x: given.positions[2 * i]!, y: given.positions[2 * i + 1]! }
  })
  const links: Link[] = []
  for (let i = 0; i < given.links.length; i += 2)
    links.push({ source: bodies[given.links[i]!]!, target: bodies[given.links[i + 1]!]! })
  simulation?.stop()
  simulation = forceSimulation<Body, Link>(bodies)
    .stop()
    .alpha(given.heat)
    .alphaDecay(ALPHA_DECAY)
    .force(
      'link',
      forceLink<Body, Link>(links).distance(({ source, target }) => lengthOf(source, target)),
    )
    .force(
      'charge',
      forceManyBody<Body>()
        .strength(({ radius }) => -30 * radius)
        .distanceMax(900),
    )
    .force(
      'collide',
      forceCollide<Body>(({ radius }) => radius + GAP_PX),
    )
    .force('group', forceGroup(bodies))
    .force('x', forceX<Body>(0).strength(0.05))
    .force('y', forceY<Body>(0).strength(0.07))
  if (onlyFinal) finish()
  else step(given.heat === 1 ? FIRST_BUDGET_MS : STEP_BUDGET_MS)
}

/** Moves the nodes of a group towards their centre. */
function forceGroup(bodies: readonly Body[]): (alpha: number) => void {
  const groups = Map.groupBy(bodies, ({ group }) => group)
  groups.delete(-1)
  return (alpha) => {
    for (const members of groups.values()) {
      const x = members.reduce((sum, one) => sum + one.x!, 0) / members.length
      const y = members.reduce((sum, one) => sum + one.y!, 0) / members.length
      for (const one of members) {
        one.vx! += (x - one.x!) * GROUP_STRENGTH * alpha
        one.vy! += (y - one.y!) * GROUP_STRENGTH * alpha
      }
    }
  }
}

const lengthOf = (source: unknown, target: unknown) => LINK_PX + (source as Body).radius + (target as Body).radius

function go(): void {
  clearTimeout(timer)
  timer = setTimeout(step, STEP_MS, STEP_BUDGET_MS)
}

function step(budgetMs: number): void {
  if (simulation === null) return
  const until = performance.now() + budgetMs
  do simulation.tick()
  while (performance.now() < until && simulation.alpha() >= simulation.alphaMin())
  const isSettled = simulation.alpha() < simulation.alphaMin()
  send(isSettled)
  if (!isSettled) go()
}

function finish(): void {
  if (simulation === null) return
  while (simulation.alpha() >= simulation.alphaMin()) simulation.tick()
  send(true)
}

function send(isSettled: boolean): void {
  const bodies = simulation?.nodes() ?? []
  const positions = new Float32Array(2 * bodies.length)
  for (const [i, { x = 0, y = 0 }] of bodies.entries()) positions.set([x, y], 2 * i)
  const message: FromLayout = { generation, positions, isSettled }
  self.postMessage(message, { transfer: [positions.buffer] })
}

function drag(index: number, x: number, y: number): void {
  const body = simulation?.nodes()[index]
  if (simulation === null || body === undefined) return
  Object.assign(body, { fx: x, fy: y, x, y })
  if (onlyFinal) return
  const wasAtRest = simulation.alpha() < simulation.alphaMin()
  simulation.alpha(Math.max(simulation.alpha(), HEAT_OF_DRAG))
  if (wasAtRest) go()
}

function release(index: number): void {
  const body = simulation?.nodes()[index]
  if (body !== undefined) Object.assign(body, { fx: null, fy: null })
}
