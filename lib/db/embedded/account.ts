import { readFileSync, statSync } from 'node:fs'
import { EmbeddedUnavailable } from './binaries.ts'

/** Numeric user and group of the server process. */
export interface Account {
  uid: number
  gid: number
  /** For messages. */
  name: string
}

// The first that exists is taken; every one is without a password, a home and files of its own on the systems that have it.
const PREFERRED = ['nobody', 'daemon', 'bin']

/**
 * PostgreSQL refuses to run as root. Root therefore starts it as the owner of an existing cluster, else as an account that owns
 * nothing; undefined, which means our own, for everybody else.
 * @param cluster the cluster's folder; need not exist
 * @throws EmbeddedUnavailable where there is no other account: initdb insists on one with a name
 */
export function serverAccount(cluster: string, passwd = '/etc/passwd'): Account | undefined {
  return process.getuid?.() === 0 ? (ownerOf(cluster, passwd) ?? unprivileged(passwd)) : undefined
}

function ownerOf(folder: string, passwd: string): Account | undefined {
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (!stat || stat.uid === 0) return undefined
  const name = readAccounts(passwd).find(({ uid }) => uid === stat.uid)?.name
  return { uid: stat.uid, gid: stat.gid, name: name ?? `user ${stat.uid}` }
}

export function unprivileged(passwd: string): Account {
  const accounts = readAccounts(passwd)
  const account = PREFERRED.map((wanted) => accounts.find(({ name }) => name === wanted)).find(Boolean) ?? accounts[0]
  if (!account)
    throw new EmbeddedUnavailable(
      `the embedded PostgreSQL cannot run as root and ${passwd} names no other user to run it as`,
    )
  return account
}

/** The accounts of a passwd file but for root. */
function readAccounts(passwd: string): Account[] {
  let text = ''
  try {
    text = readFileSync(passwd, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  return text
    .split('\n')
    .map((line) => line.split(':'))
    .filter(([name, , uid, gid]) => name && /^\d+$/.test(uid ?? '') && /^\d+$/.test(gid ?? '') && Number(uid) !== 0)
    .map(([name, , uid, gid]) => ({ name: name!, uid: Number(uid), gid: Number(gid) }))
}
