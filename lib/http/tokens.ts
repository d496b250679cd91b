import { createHash, timingSafeEqual } from 'node:crypto'
import type { Config, TokenVariable } from '../config/index.ts'
import type { TokenHolder } from '../config/token-files.ts'
import type { ConfiguredToken } from '../config/token-variables.ts'
import { ConfigError } from '../errors.ts'
import type { Scope } from '../openapi/declare.ts'

export interface Tokens extends TokenHolder<TokenVariable> {
  /** Whether any token is configured. */
  readonly enabled: boolean
  /** The variables that supplied tokens. */
  readonly sources: readonly string[]
  /**
   * The scopes that an `Authorization` header grants, null when it carries no known token. With no token configured
   * every caller may read, ingest and administer; supply-chain data always needs a token.
   */
  authenticate(header: string | undefined): ReadonlySet<Scope> | null
}

/** The name of a scheme is the same in any case of letters (RFC 9110, 11.1). */
const SCHEME = /^bearer /i

const grants: Record<TokenVariable, ReadonlySet<Scope>> = {
  BROKER_TOKEN_READ: new Set(['open', 'read']),
  BROKER_TOKEN_INGEST: new Set(['open', 'ingest', 'read']),
  BROKER_TOKEN_SUPPLYCHAIN: new Set(['open', 'supplychain', 'read']),
  BROKER_TOKEN_ADMIN: new Set(['open', 'read', 'ingest', 'supplychain', 'admin']),
  // It will open the routes of the catalog of nodes, which this broker does not have.
  BROKER_TOKEN_CATALOG: new Set(['open']),
  BROKER_AUTH_TOKEN: new Set(['open', 'read', 'ingest']),
}
const withoutAuth: ReadonlySet<Scope> = new Set(['open', 'read', 'ingest', 'admin'])

/**
 * The configured tokens (docs/contract.md#authentication), compared by digest: one length for all, so that the time of
 * a comparison reveals nothing about a token.
 * @throws ConfigError naming both variables when two hold the same value.
 */
export function createTokens(config: Pick<Config, 'tokens'>): Tokens {
  let configured = config.tokens
  let known = knownOf(configured)

  function authenticate(header: string | undefined): ReadonlySet<Scope> | null {
    if (known.length === 0) return withoutAuth
    if (header === undefined || !SCHEME.test(header)) return null
    const presented = digest(header.slice('Bearer '.length).trim())
    let granted: ReadonlySet<Scope> | null = null
    // Stopping at the first match would reveal which token it was.
    for (const { scopes, digest: expected } of known) if (timingSafeEqual(presented, expected)) granted = scopes
    return granted
  }

  return {
    enabled: known.length > 0,
    sources: [...new Set(known.map((token) => token.source))],
    authenticate,
    get configured() {
      return configured
    },
    replace(tokens) {
      known = knownOf(tokens)
      configured = tokens
    },
  }
}

function knownOf(tokens: readonly ConfiguredToken<TokenVariable>[]) {
  const known = tokens.map(({ variable, source, value }) => ({
    source,
    scopes: grants[variable],
    digest: digest(value),
  }))
  for (const [i, one] of known.entries()) {
    const twin = known.slice(i + 1).find((other) => timingSafeEqual(one.digest, other.digest))
    if (twin) throw new ConfigError(`${one.source} and ${twin.source} hold the same token: give each its own`)
  }
  return known
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
