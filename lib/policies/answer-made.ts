/** The answers of the routes that make policies (docs/contract.md#network-policies). */
import { z } from 'zod'
import type { Database } from '../db/index.ts'
import { HttpError, noData } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import type { RouteDoc } from '../openapi/declare.ts'
import { captureHeaders, documentedCaptureHeaders } from '../seccomp/index.ts'
import { comment, type Manifest, quoted } from '../text/yaml.ts'
import { type Everything, type PolicySettings, readAll } from './everything.ts'
import { type Connection, type End, type Workload, workloadOfEnd } from './facts.ts'
import { GenerateQuery } from './generate-query.ts'
import { defaultDenyOf, refusalOf, withNotes, yamlOfDefaultDeny, yamlOfPolicy } from './make/document.ts'
import { type MadePolicy, type MakeOptions, PolicyMaker } from './make/policy.ts'
import { keyOfWorkload, workloadText } from './pods.ts'

const YAML = 'application/yaml'
const JSON_TYPE = 'application/json'

/** A policy, for the OpenAPI document. */
export const MadeManifest = z
  .looseObject({
    apiVersion: z.enum(['networking.k8s.io/v1', 'cilium.io/v2']),
    kind: z.enum(['NetworkPolicy', 'CiliumNetworkPolicy']),
    metadata: z.looseObject({ name: z.string(), namespace: z.string() }),
    spec: z.looseObject({}),
  })
  .meta({ id: 'MadeNetworkPolicy' })

export const MadeManifests = z
  .strictObject({ apiVersion: z.literal('v1'), kind: z.literal('List'), items: z.array(MadeManifest) })
  .meta({ id: 'MadeNetworkPolicies' })

/** Statuses of the routes beside 200, for the OpenAPI document. */
const etag = { ETag: z.string().describe('Send it back as `If-None-Match`. It is the same for the same text.') }
export const madeAnswers = {
  headers: { ...documentedCaptureHeaders, ...etag },
  also: {
    304: { description: 'The client has this text: `If-None-Match` matches.', answer: null, headers: etag },
    404: noData().message,
    409: {
      description:
        'What was observed is not complete, or no labels select the workload alone. The text says why, and what can ' +
        'be done.',
      answer: { contentType: 'text/plain', schema: z.string() },
      headers: documentedCaptureHeaders,
    },
  },
} satisfies Partial<RouteDoc>

export interface MadeAnswer {
  readonly text: string
  readonly headers: Record<string, string>
}

/**
 * The policy of a workload.
 * @throws HttpError 404 if nothing is known of it; 409 if what was observed is not complete
 */
export async function makePolicy(
  db: Database,
  workload: Workload,
  query: GenerateQuery,
  config: PolicySettings,
): Promise<MadeAnswer> {
  const everything = await readAll(db, workload, query, config)
  const { options } = everything
  const made = await makeOf(everything, workload, options)
  requireComplete([made], options)
  const isJson = options.output === 'json'
  const text = isJson ? JSON.stringify(withNotes(made, options)) : yamlOfPolicy(made)
  return { text, headers: { ...headersOf([made]), 'content-type': isJson ? JSON_TYPE : YAML } }
}

/**
 * The policy of a workload from all that was seen of it, in each of these formats, whether or not that is complete.
 * @throws HttpError 404 if nothing is known of the workload; 409 if no labels select it alone; 400 for too many edges
 */
export async function makeAsSeen(
  db: Database,
  workload: Workload,
  formats: readonly MakeOptions['format'][],
  { minDays, ...config }: PolicySettings & { readonly minDays: number },
): Promise<MadePolicy[]> {
  const query = GenerateQuery.parse({ min_days: String(minDays), acknowledgePartial: 'true' })
  const everything = await readAll(db, workload, query, config)
  const made: MadePolicy[] = []
  for (const format of formats) made.push(await makeOf(everything, workload, { ...everything.options, format }))
  return made
}

function makeOf({ facts, watched }: Everything, workload: Workload, options: MakeOptions): Promise<MadePolicy> {
  const own = watched.find((one) => one.workload.kind === workload.kind && one.workload.name === workload.name)
  const isEnd = (end: End) => end.type === 'workload' && workloadText(end) === workloadText(workload)
  if (own === undefined && !facts.connections.some(({ from, to }) => isEnd(from) || isEnd(to))) throw noData()
  return new PolicyMaker(facts, options).make(workload, own ?? { since: null, silentNodes: [] })
}

/**
 * The policies of all workloads of a namespace that pods are known of, and one that denies everything else.
 * @throws HttpError 404 if no pod is known; 409 if what was observed of any workload is not complete
 */
export async function makePolicies(
  db: Database,
  namespace: string,
  query: GenerateQuery,
  config: PolicySettings,
): Promise<MadeAnswer> {
  const { facts, watched, options } = await readAll(db, { namespace }, query, config)
  if (watched.length === 0) throw noData()
  const maker = new PolicyMaker(facts, options)
  const made: MadePolicy[] = []
  const unselectable: string[] = []
  const slice = new Slice()
  for (const one of watched) {
    if (slice.isOver) await slice.next()
    try {
      made.push(await maker.make(one.workload, one, slice))
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
      unselectable.push(error.message.trim())
    }
  }
  requireComplete(made, options, unselectable)
  const headers = headersOf(unselectable.length > 0 ? [] : made)
  const gone = goneOf(
    namespace,
    facts.connections,
    watched.map((one) => one.workload),
  )
  const left = [...unselectable, ...gone].map((one) => `LEFT OUT, and cut off by this policy: ${one}`)
  if (options.output === 'json') {
    const items: Manifest[] = [defaultDenyOf(namespace, options, left), ...made.map((one) => withNotes(one, options))]
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
    return { text, headers: { ...headers, 'content-type': JSON_TYPE } }
  }
  const documents = [left.map(comment).join('') + yamlOfDefaultDeny(namespace, options)]
  for (const one of made) {
    if (slice.isOver) await slice.next()
    documents.push(yamlOfPolicy(one))
  }
  return { text: documents.join('---\n'), headers: { ...headers, 'content-type': YAML } }
}

/** Workloads that are named at most of those that have no policy because their pods are gone. */
const MAX_GONE = 20

/** The workloads of a namespace of which connections were seen, but no pod is known any more: they may come back. */
function goneOf(namespace: string, connections: readonly Connection[], known: readonly Workload[]): string[] {
  const gone = new Map(
    connections
      .filter(({ isDropped }) => !isDropped)
      .flatMap(({ from, to }) => [workloadOfEnd(from), workloadOfEnd(to)])
      .filter((one) => one !== null && one.namespace === namespace)
      .map((one) => [keyOfWorkload(one!), one!]),
  )
  for (const one of known) gone.delete(keyOfWorkload(one))
  // Names of pods seldom come back.
  const rank = ({ kind }: Workload) => (kind === 'Pod' ? '1' : '0')
  const sorted = [...gone.values()].map((one) => `${rank(one)}${workloadText(one)}`).sort()
  const named = sorted.slice(0, MAX_GONE).map((one) => quoted(one.slice(1)))
  const more = sorted.length - named.length
  return [...named, ...(more > 0 ? [`+${more} more`] : [])].map(
    (one) => `${one}: its connections were seen, but no pod of it is known any more`,
  )
}

function requireComplete(
  made: readonly MadePolicy[],
  options: MakeOptions,
  unselectable: readonly string[] = [],
): void {
  const refused = made.filter(({ gaps }) => gaps.length > 0)
  if (refused.length + unselectable.length === 0 || options.acknowledgePartial) return
  throw new HttpError(409, refusalOf(refused, unselectable), headersOf(unselectable.length > 0 ? [] : made))
}

function headersOf(made: readonly MadePolicy[]): Record<string, string> {
  const complete = made.length > 0 && made.every(({ gaps }) => gaps.length === 0)
  return captureHeaders({ level: complete ? 'full' : 'unknown', complete })
}
