/** Bodies and queries for the tests of seccomp denials. */
import assert from 'node:assert/strict'
import type { startApp } from '../support/app.ts'

export type App = Pick<Awaited<ReturnType<typeof startApp>>, 'sql' | 'post' | 'get'>
export type Fields = Record<string, unknown>

let made = 0

/** A name that no other call returns. */
export const unique = (prefix: string) => `${prefix}-${++made}`

/** An entry with every required field and a pod of its own; a field given as undefined is left out. */
export function denial(fields: Fields = {}): Fields {
  const podName = (fields.podName as string) ?? unique('denied')
  return {
    podUid: `uid-${podName}`,
    podName,
    podNamespace: 'shop',
    syscall: 'ptrace',
    action: 'SCMP_ACT_ERRNO',
    count: 1,
    ...fields,
  }
}

export const drain = (denials: unknown, fields: Fields = {}): Fields => ({
  node: 'node-a',
  capturing: true,
  intervalSeconds: 10,
  denials,
  ...fields,
})

/** Posts a drain that must be accepted; returns the number of its rows. */
export async function take(app: App, denials: unknown[], fields: Fields = {}): Promise<number> {
  const answer = await app.post('/seccomp/denials', drain(denials, fields))
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(Object.keys(answer.json), ['accepted'])
  return answer.json.accepted
}

export interface Row {
  id: number
  podUid: string
  podName: string
  podNamespace: string
  workloadKind: string | null
  workloadName: string | null
  nodeName: string | null
  syscall: string
  syscallNr: number | null
  action: string
  actionRaw: number | null
  arch: string | null
  count: number
  firstSeen: string
  lastSeen: string
}

/** The rows of a query. */
export async function rows(app: App, query = ''): Promise<Row[]> {
  const answer = await app.get(`/seccomp/denials?limit=500${query && `&${query}`}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

/** The stored row of a node. */
export async function heartbeat(app: Pick<App, 'sql'>, node = 'node-a') {
  const [row] = await app.sql<
    { capturing: boolean; interval_seconds: number | null; posts: string[]; age_secs: number }[]
  >`
    select capturing, interval_seconds::integer, array_to_json(posts) as posts, extract(epoch from clock_timestamp() at time zone 'utc' - updated_at)::float8 as age_secs
    from seccomp_denial_node where node_name = ${node}`
  return row
}

/** A time so many seconds from now in the format of agents. */
export const inSecs = (secs: number) => new Date(Date.now() + secs * 1_000).toISOString()

/** The counted denials by workload, as `namespace kind name` with the action if there is one. */
export const countedBy = ({ denials }: { denials: { series: { text(): string } } }): Record<string, number> =>
  Object.fromEntries(
    [...denials.series.text().matchAll(/^\w+\{(.*)\} (\S+)$/gm)].map(([, labels, value]) => [
      [...labels!.matchAll(/\w+="([^"]*)"/g)].map(([, label]) => label).join(' '),
      Number(value),
    ]),
  )

/** The value of each series of a metric, by its only label. */
export async function byLabel(metric: {
  get(): Promise<{ values: { value: number; labels: object }[] }>
}): Promise<Record<string, number>> {
  const { values } = await metric.get()
  return Object.fromEntries(values.map(({ value, labels }) => [Object.values(labels)[0] ?? '', value]))
}
