/**
 * The way to a broker in a cluster: `kubectl port-forward` to its Service, from a free port of 127.0.0.1. It ends with
 * the program; if it ends before, the next request starts another.
 */
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { type ClusterFlags, startKubectl } from './kubectl.ts'

/** The labels of the chart. The Service of the metrics has those of the broker, and one more. */
const SELECTOR = [
  'app.kubernetes.io/name=cluster-telemetry-broker',
  'app.kubernetes.io/component=broker',
  'cluster-telemetry-broker/port!=metrics',
].join()
const PORT = 9090
/** Time for a login in a browser, and for a pod to start. */
const MAX_WAIT_MS = 120_000
const MAX_LISTED = 20

const forwards = new WeakMap<CliContext, Promise<URL>>()

/** @throws Failure with what kubectl could not do */
export function forwarded(context: CliContext, flags: ClusterFlags, signal?: AbortSignal): Promise<URL> {
  const known = forwards.get(context)
  if (known !== undefined) return known
  const limit = AbortSignal.any([AbortSignal.timeout(MAX_WAIT_MS), ...(signal === undefined ? [] : [signal])])
  const forward = start(context, flags, limit)
  forwards.set(context, forward)
  return forward
}

async function start(context: CliContext, flags: ClusterFlags, limit: AbortSignal): Promise<URL> {
  const { namespace, name } = await serviceOf(context, flags, limit)
  const place = namespace === undefined ? [] : [`--namespace=${namespace}`]
  const words = ['port-forward', ...place, '--address=127.0.0.1', `service/${name}`, `:${PORT}`]
  const { goesOn, lines, ended } = await startKubectl(context, flags, words, limit)
  ended.then(() => forwards.delete(context))
  const port = await new Promise<string | undefined>((resolve) => {
    lines.on('line', (line) => {
      const [, found] = /^Forwarding from 127\.0\.0\.1:(\d+) -> /.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
    ended.then(() => resolve(undefined))
  })
  if (port === undefined)
    throw new Failure(`kubectl cannot forward a port to service/${name}${inNamespace(namespace)}`, EXIT.notReachable)
  goesOn()
  return new URL(`http://127.0.0.1:${port}`)
}

interface Service {
  /** Undefined for that of the context. */
  readonly namespace: string | undefined
  readonly name: string
}

/** The Service of the flags, or the only one of the cluster that has the labels. */
async function serviceOf(context: CliContext, flags: ClusterFlags, limit: AbortSignal): Promise<Service> {
  const { brokerNamespace: namespace, brokerService: name } = flags
  if (name !== undefined) return { namespace, name }
  const place = namespace === undefined ? '--all-namespaces' : `--namespace=${namespace}`
  const output = 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\\n"}{end}'
  const words = ['get', 'services', place, `--selector=${SELECTOR}`, `--output=${output}`]
  const { lines, ended } = await startKubectl(context, flags, words, limit)
  const found: Service[] = []
  lines.on('line', (line) => {
    const [, within, service] = /^(\S+) (\S+)$/.exec(line) ?? []
    if (service !== undefined) found.push({ namespace: within!, name: service })
  })
  if ((await ended) !== 0)
    throw new Failure(
      'kubectl cannot list the Services of the broker; with --broker-namespace and --broker-service it need not',
      EXIT.notReachable,
    )
  if (found.length === 1) return found[0]!
  if (found.length === 0)
    throw new Failure(
      `no Service has the labels of the broker${inNamespace(namespace)}: ` +
        'name it with --broker-namespace and --broker-service',
      EXIT.notReachable,
    )
  const listed = found
    .slice(0, MAX_LISTED)
    .map((one) => `\n  --broker-namespace ${one.namespace} --broker-service ${one.name}`)
  throw new Failure(`the cluster has ${found.length} brokers; expected the flags of one:${listed.join('')}`, EXIT.usage)
}

const inNamespace = (namespace: string | undefined): string =>
  namespace === undefined ? '' : ` in namespace ${namespace}`
