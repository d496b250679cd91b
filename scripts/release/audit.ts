// Asks the registry for advisories on all locked packages, also those for development: `npm run audit`. Exits with 1 if
// an advisory is not allowed by scripts/release/advisories.allowed.json, and with 0 and a message if the registry gives
// no answer.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Exception {
  /** The last segment of the URL of the advisory, such as GHSA-xxxx-xxxx-xxxx. */
  readonly id: string
  /** Why the advisory does not apply here. */
  readonly reason: string
  /** The last day of the exception, YYYY-MM-DD, in UTC. */
  readonly until: string
}

interface Advisory {
  readonly name: string
  readonly title: string
  readonly url: string
  readonly severity: string
  readonly range: string
}

/** The output of `npm audit --json`. `via` has advisories, and names of packages that have them. */
interface Report {
  readonly auditReportVersion?: number
  readonly vulnerabilities?: Readonly<Record<string, { via: readonly (Advisory | string)[] }>>
  readonly message?: string
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const ALLOWED = fileURLToPath(new URL('advisories.allowed.json', import.meta.url))
const TIMEOUT_MS = 30_000
/** The registry has no audit, or cannot be reached. Any other error is a fault of this script or of npm. */
const NO_ANSWER =
  /\/security\/|\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b|network|timeout/i

/** Reads the exceptions of a file. Throws for one without a reason or a date. */
export function readExceptions(text: string): Exception[] {
  const exceptions: Exception[] = JSON.parse(text)
  for (const { id, reason, until } of exceptions)
    if (!id || !reason || !/^\d{4}-\d\d-\d\d$/.test(until))
      throw new Error(`an exception needs id, reason and until: ${id}`)
  return exceptions
}

/** Returns a line for each advisory that is not allowed on the given day, YYYY-MM-DD. */
export function findings(report: Report, exceptions: readonly Exception[], today: string): string[] {
  const advisories = Object.values(report.vulnerabilities ?? {}).flatMap(({ via }) =>
    via.filter((one) => typeof one !== 'string'),
  )
  const lines = advisories.flatMap(({ name, range, severity, title, url }) => {
    const exception = exceptions.find(({ id }) => id === url.split('/').at(-1))
    if (severity === 'info' || (exception && today <= exception.until)) return []
    return [`${name} ${range}: ${severity}: ${title} (${url})${exception ? `; allowed until ${exception.until}` : ''}`]
  })
  return [...new Set(lines)]
}

/** @returns the exit code */
function audit(allowedFile: string): number {
  const exceptions = readExceptions(readFileSync(allowedFile, 'utf8'))
  const words = ['audit', '--json', '--package-lock-only', '--fetch-retries=0', `--fetch-timeout=${TIMEOUT_MS}`]
  const { stdout, stderr, error } = spawnSync('npm', words, { cwd: ROOT, encoding: 'utf8', timeout: 2 * TIMEOUT_MS })
  const isLate = (error as NodeJS.ErrnoException | undefined)?.code === 'ETIMEDOUT'
  if (error && !isLate) throw error
  const report: Report = isLate ? { message: 'timeout' } : parsed(stdout, stderr)
  if (report.auditReportVersion === undefined) {
    const message = report.message ?? ''
    const isNoAnswer = NO_ANSWER.test(message)
    process.stderr.write(
      isNoAnswer ? `NOT AUDITED: the registry gave no answer: ${message}\n` : `npm audit: ${message || stderr}\n`,
    )
    return isNoAnswer ? 0 : 1
  }
  const found = findings(report, exceptions, new Date().toISOString().slice(0, 10))
  for (const line of found) process.stderr.write(`${line}\n`)
  if (found.length === 0) process.stdout.write('audited: no advisory that is not allowed\n')
  return found.length === 0 ? 0 : 1
}

function parsed(stdout: string, stderr: string): Report {
  try {
    return JSON.parse(stdout)
  } catch {
    return { message: stderr }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = audit(resolve(process.argv[2] ?? ALLOWED))
