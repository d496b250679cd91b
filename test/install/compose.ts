/** compose.yaml as Compose reads it: YAML with variables of the environment filled in. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { load } from 'js-yaml'

export const COMPOSE_FILE = 'wrangler-free-deploy/compose.yaml'
const PATH = fileURLToPath(new URL(`../../${COMPOSE_FILE}`, import.meta.url))

export interface Service {
  image: string
  build?: { context: string }
  user?: string
  entrypoint?: string[]
  command?: string[]
  environment?: Record<string, string>
  ports?: string[]
  volumes?: string[]
  tmpfs?: string[]
  networks?: string[]
  network_mode?: string
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[] } & Record<string, unknown>
  mem_limit?: string
  restart?: string
  stop_grace_period?: string
  shm_size?: string
  read_only?: boolean
  cap_drop?: string[]
  security_opt?: string[]
}

export interface Compose {
  name: string
  services: Record<string, Service>
  networks: Record<string, { internal?: boolean }>
  volumes: Record<string, object>
}

/** The variables that the file uses. */
export const composeVariables = () =>
  new Set([...readFileSync(PATH, 'utf8').matchAll(/\$\{(\w+)/g)].map(([, name]) => name!))

/** The file with `env` filled in. */
export function readCompose(env: Readonly<Record<string, string>> = {}): Compose {
  const text = readFileSync(PATH, 'utf8').replace(/^\s*#.*$/gm, '')
  const filled = text.replace(/\$\$|\$\{(\w+)(?::-([^}]*))?\}|\$./g, (whole, name?: string, fallback?: string) => {
    if (whole === '$$') return '$'
    if (name === undefined) throw new Error(`not understood: ${whole}`)
    return env[name] || (fallback ?? '')
  })
  return load(filled) as Compose
}
