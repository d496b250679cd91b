/** Where the broker is, and the token for it. */
import { createSecureContext } from 'node:tls'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { readFile } from '../input.ts'

const DEFAULT_SERVER = 'http://127.0.0.1:9090'

export interface ConnectionFlags {
  readonly server?: string
  readonly tokenFile?: string
  readonly brokerTokenFile?: string
  readonly ca?: string
}

/** The address, with the path in front of those of the API, such as that of an ingress. */
export function serverOf({ env }: CliContext, { server }: ConnectionFlags): URL {
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
