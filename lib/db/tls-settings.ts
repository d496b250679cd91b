/**
 * The TLS settings of a connection URL and of libpq's variables (PostgreSQL 18, 32.19). The service never does less
 * than they ask.
 */
import { readFileSync } from 'node:fs'
import { createSecureContext, type SecureContextOptions } from 'node:tls'

const MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const

export interface TlsSettings {
  mode: (typeof MODES)[number]
  /** Start with TLS instead of asking for it first; PostgreSQL 17 or newer. */
  direct?: boolean
  /** Files, read for each connection. Without `rootFile`, Node's certificate authorities. */
  rootFile?: string
  certFile?: string
  keyFile?: string
}

export const TLS_PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation']

/** The files as `tls.connect` takes them. Throws when one cannot be read. */
export function readFiles({ rootFile, certFile, keyFile }: TlsSettings): SecureContextOptions {
  return {
    ...(rootFile === undefined ? {} : { ca: readFileSync(rootFile) }),
    ...(certFile === undefined ? {} : { cert: readFileSync(certFile) }),
    ...(keyFile === undefined ? {} : { key: readFileSync(keyFile) }),
  }
}

/** @throws the error that `fault` makes of a parameter's name, its source and the rule it breaks */
export function readTls(
  parameters: ReadonlyMap<string, { value: string; source: string }>,
  fault: (name: string, source: string, rule: string) => Error,
): TlsSettings {
  const get = (name: string) => parameters.get(name)?.value
  const refuse = (name: string, rule: string) => fault(name, parameters.get(name)!.source, rule)

  const root = get('sslrootcert')
  const asked = get('sslmode') ?? (root === 'system' ? 'verify-full' : 'disable')
  const mode = MODES.find((one) => one === asked)
  if (mode === undefined) throw refuse('sslmode', `expected ${MODES.join(', ')}`)
  if (root !== undefined && get('sslmode') === undefined && root !== 'system')
    throw refuse('sslrootcert', 'counts only with a sslmode: set that to verify-full')
  if (root === 'system' && mode !== 'verify-full')
    throw refuse('sslrootcert', '`system` goes only with the sslmode verify-full')
  if (root === undefined && mode === 'verify-ca')
    throw refuse(
      'sslmode',
      'verify-ca needs sslrootcert, the file of the authority: of those that Node trusts any would do',
    )

  const [certFile, keyFile] = [get('sslcert'), get('sslkey')]
  if (certFile !== undefined && keyFile === undefined) throw refuse('sslcert', 'needs sslkey, the file of its key')
  if (keyFile !== undefined && certFile === undefined)
    throw refuse('sslkey', 'needs sslcert, the file of its certificate')
  if (certFile !== undefined && get('sslmode') === undefined)
    throw refuse('sslcert', 'counts only with a sslmode: set that to verify-full')
  const negotiation = get('sslnegotiation') ?? 'postgres'
  if (negotiation !== 'postgres' && negotiation !== 'direct')
    throw refuse('sslnegotiation', 'expected postgres, direct')
  if (negotiation === 'direct' && ['disable', 'prefer'].includes(mode))
    throw refuse('sslnegotiation', 'direct goes only with a sslmode from require up')

  const settings: TlsSettings = {
    // As in libpq, an authority makes `require` check the certificate.
    mode: mode === 'require' && root !== undefined ? 'verify-ca' : mode,
    ...(negotiation === 'direct' ? { direct: true } : {}),
    ...(root === undefined || root === 'system' ? {} : { rootFile: root }),
    ...(certFile === undefined ? {} : { certFile, keyFile: keyFile! }),
  }
  for (const [name, file] of [
    ['sslrootcert', settings.rootFile],
    ['sslcert', certFile],
    ['sslkey', keyFile],
  ] as const) {
    if (file === undefined) continue
    try {
      readFileSync(file)
    } catch (error) {
      throw refuse(name, `${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
    }
  }
  try {
    createSecureContext(readFiles(settings))
  } catch (error) {
    const name = settings.rootFile === undefined ? 'sslcert' : 'sslrootcert'
    throw refuse(name, `the certificate files cannot be used (${(error as NodeJS.ErrnoException).code})`)
  }
  return settings
}
