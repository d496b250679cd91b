/** Requests to the broker. The token comes from the environment or a file, never from an argument. */
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { CliContext } from './context.ts'
import { EXIT, Failure } from './failure.ts'

const DEFAULT_SERVER = 'http://127.0.0.1:9090'
const MAX_RETRIES = 3
const DEFAULT_RETRY_SECS = 5
const MS_PER_SECOND = 1_000

export interface ConnectionFlags {
  readonly server?: string
  readonly tokenFile?: string
  readonly ca?: string
}

export interface Ask {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Flags by parameter; those that are undefined are left out. */
  readonly query: Readonly<Record<string, string | undefined>>
  readonly body?: string
}

/**
 * The text of an answer of 200.
 * @throws Failure with the text and the exit code of any other answer
 */
export async function ask(
  context: CliContext,
  flags: ConnectionFlags,
  { method, path, query, body }: Ask,
): Promise<string> {
  const url = new URL(path, serverOf(context, flags))
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
  const token = tokenOf(context, flags)
  const options = {
    method,
    ca: flags.ca === undefined ? undefined : read(flags.ca),
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/yaml', 'content-length': Buffer.byteLength(body) }),
    },
  }
  for (let retries = 0; ; retries++) {
    const { status, text, retryAfter } = await send(url, options, body)
    if (status === 200) return text
    if (status !== 503 || retries === MAX_RETRIES) throw failureOf(status, text)
    const seconds = retryAfter ?? DEFAULT_RETRY_SECS
    context.say(`${text.trim()} (asked again in ${seconds} s)`)
    await delay(seconds * MS_PER_SECOND)
  }
}

interface Received {
  readonly status: number
  readonly text: string
  readonly retryAfter: number | null
}

function send(url: URL, options: https.RequestOptions, body: string | undefined): Promise<Received> {
  return new Promise((resolve, reject) => {
    const unreachable = (error: Error) =>
      reject(new Failure(`${url.origin} cannot be reached: ${error.message}`, EXIT.notReachable))
    const request = (url.protocol === 'https:' ? https : http).request(url, options, (answer) => {
      const parts: Buffer[] = []
      answer.on('data', (part: Buffer) => parts.push(part))
      answer.once('error', unreachable)
      answer.once('end', () => {
        const seconds = Number(answer.headers['retry-after'])
        resolve({
          status: answer.statusCode!,
          text: Buffer.concat(parts).toString(),
          retryAfter: Number.isInteger(seconds) ? seconds : null,
        })
      })
    })
    request.once('error', unreachable).end(body)
  })
}

function failureOf(status: number, text: string): Failure {
  const codes: Record<number, number> = {
    ...{ 400: EXIT.usage, 413: EXIT.usage, 401: EXIT.token, 403: EXIT.token, 404: EXIT.notFound, 409: EXIT.partial },
  }
  return new Failure(text.trim() || `the broker answered ${status}`, codes[status] ?? EXIT.notReachable)
}

function serverOf({ env }: CliContext, { server = env.CTB_SERVER ?? DEFAULT_SERVER }: ConnectionFlags): string {
  if (/^https?:$/.test(protocolOf(server))) return server
  throw new Failure(`--server: expected an address such as ${DEFAULT_SERVER}`, EXIT.usage)
}

function protocolOf(server: string): string {
  try {
    return new URL(server).protocol
  } catch {
    return ''
  }
}

function tokenOf({ env }: CliContext, { tokenFile }: ConnectionFlags): string | null {
  const token = tokenFile === undefined ? (env.CTB_TOKEN ?? env.KGUARDIAN_BROKER_TOKEN) : read(tokenFile)
  const trimmed = token?.trim() ?? ''
  return trimmed === '' ? null : trimmed
}

export function read(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch (error) {
    throw new Failure((error as Error).message, EXIT.usage)
  }
}
