/** Syscall denials in the pods of the workload. */
import { type Answer, addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Count } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { href } from '../../../place.ts'
import type { Named } from '../name.ts'

const PATH = '/seccomp/denials'
const SHOWN = 100

type Denial = Answer<typeof PATH>[number]

export function Denials({ workload: { namespace, kind, name } }: { workload: Named }) {
  const params = { query: { namespace, kind, workload: name, limit: SHOWN } }
  const reading = useRead(PATH, params)
  return (
    <section class="section">
      <h2>Denials of the kernel</h2>
      <Shown reading={reading}>
        {(rows) => (
          <>
            {rows.length === SHOWN && <p class="faint">The {SHOWN} that were seen last.</p>}
            <Table
              name="Denials of the kernel"
              rows={rows}
              keyOf={({ id }) => String(id)}
              columns={COLUMNS}
              commands={{
                ctb: ['seccomp', 'denials', '-n', namespace, '--kind', kind, '--workload', name, '--limit', `${SHOWN}`],
                url: addressOf(PATH, params),
              }}
              empty={
                <Empty title="No denial is stored">
                  That says something only where nodes watch for denials: see “Denied or logged by the kernel” above,
                  and <a href={href(['health'])}>what is not watched</a>.
                </Empty>
              }
            />
          </>
        )}
      </Shown>
    </section>
  )
}

const COLUMNS: readonly Column<Denial>[] = [
  { title: 'Syscall', cell: ({ syscall }) => <code>{syscall}</code>, text: ({ syscall }) => syscall },
  { title: 'Action', cell: ({ action }) => action, text: ({ action }) => action },
  { title: 'Events', cell: ({ count }) => <Count value={count} />, text: ({ count }) => count, isNumber: true },
  { title: 'Pod', cell: ({ podName }) => podName, text: ({ podName }) => podName },
  {
    title: 'Node',
    cell: ({ nodeName }) =>
      nodeName === null ? <span class="faint">?</span> : <a href={href(['node', nodeName])}>{nodeName}</a>,
    text: ({ nodeName }) => nodeName,
  },
  { title: 'First seen', cell: ({ firstSeen }) => <Ago at={firstSeen} />, text: ({ firstSeen }) => firstSeen },
  { title: 'Last seen', cell: ({ lastSeen }) => <Ago at={lastSeen} />, text: ({ lastSeen }) => lastSeen },
]
