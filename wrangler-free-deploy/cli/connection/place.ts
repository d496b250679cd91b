/** Where the broker is, and the token for it. */
import { createSecureContext } from 'node:tls'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { readFile } from '../input.ts'
import { forwarded } from './forward.ts'
import type { ClusterFlags } from './kubectl.ts'

const DEFAULT_SERVER = 'http://127.0.0.1:9090'

export interface ConnectionFlags extends ClusterFlags {
  readonly server?: string
  readonly tokenFile?: string
  readonly brokerTokenFile?: string
  readonly ca?: string
}

const CLUSTER_FLAGS = ['context', 'kubeconfig', 'brokerNamespace', 'brokerService'] as const

/**
 * Whether kubectl leads to the broker: a flag of a cluster says so. As a plugin of kubectl, its current context does
 * unless an address is given.
 * @throws Failure for flags that exclude each other
 */
export function isForwarded({ env, isPlugin }: CliContext, flags: ConnectionFlags): boolean {
  const hasCluster = CLUSTER_FLAGS.some((name) => flags[name] !== undefined)
  if (hasCluster && flags.server !== undefined)
    throw new Failure('expected --server, or --context and the other flags of a cluster', EXIT.usage)
  return hasCluster || (isPlugin && flags.server === undefined && (env.CTB_SERVER?.trim() ?? '') === '')
}

/**
 * The address to send requests to.
 * @throws Failure if it is none, or kubectl does not lead there
 */
export function serverOf(context: CliContext, flags: ConnectionFlags, signal?: AbortSignal): Promise<URL> | URL {
  return isForwarded(context, flags) ? forwarded(context, flags, signal) : addressOf(context, flags)
}

/** The address for a request that is printed: kubectl is not started for it. */
export function printedServerOf(context: CliContext, flags: ConnectionFlags): URL {
  if (!isForwarded(context, flags)) return addressOf(context, flags)
  context.say('the request needs a port that leads to the broker: kubectl port-forward service/NAME 9090')
  return new URL(DEFAULT_SERVER)
}

/** The address, with the path in front of those of the API, such as that of an ingress. */
function addressOf({ env }: CliContext, { server }: ConnectionFlags): URL {
  const [source, text] =
    server === undefined ? ['CTB_SERVER', env.CTB_SERVER?.trim() || DEFAULT_SERVER] : ['--server', server]
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new Failure(`${source}: expected an address such as ${DEFAULT_SERVER}`, EXIT.usage)
  if (url.username !== '' || url.password !== '')
    throw new Failure(`${source}: expected no user and password in the address`, EXIT.usage)
  return url
}

/** Null if none is configured. Of two tokens with a comma between, as the broker has them, the first counts. */
export async function tokenOf({ env }: CliContext, flags: ConnectionFlags): Promise<string | null> {
  const file = flags.tokenFile ?? flags.brokerTokenFile
  const [source, text] =
    file === undefined
      ? (['CTB_TOKEN', 'KGUARDIAN_BROKER_TOKEN']
          .map((name) => [name, env[name] ?? ''])
          .find(([, value]) => value !== '') ?? ['', ''])
      : [file, await readFile(file)]
  const token = text!.split(',')[0]!.trim()
  if (!/^[\x20-\x7e]*$/.test(token))
    throw new Failure(`${source}: no header can carry the token: it has characters outside printable ASCII`, EXIT.token)
  if (token === '' && file !== undefined) throw new Failure(`${source}: expected a token`, EXIT.token)
  return token === '' ? null : token
}

/** The certificates to trust; undefined for those of Node. */
export async function trustedOf({ ca }: ConnectionFlags): Promise<string | undefined> {
  if (ca === undefined) return undefined
  const pem = await readFile(ca)
  try {
    if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error('there is none')
    createSecureContext({ ca: pem })
    return pem
  } catch (error) {
    throw new Failure(`${ca}: expected certificates as PEM: ${(error as Error).message}`, EXIT.usage)
  }
}
