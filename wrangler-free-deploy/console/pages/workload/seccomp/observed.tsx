/** Each observed syscall with its times and images, and the action of the applied profile for it. */
import type { Commands } from '../../../parts/copy-as.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, Digest } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import type { Seccomp } from './tab.tsx'

type Row = NonNullable<Seccomp['detail']>['syscalls'][number]

export function Observed({ seccomp, commands }: { seccomp: Seccomp; commands: Commands }) {
  const rows = seccomp.detail?.syscalls ?? []
  const missing = new Set(seccomp.cr?.drift.missing)
  const state: Column<Row> = {
    title: 'Applied profile',
    cell: ({ name }) =>
      missing.has(name) ? <Badge tone="warn">not allowed</Badge> : <span class="faint">allowed</span>,
    text: ({ name }) => (missing.has(name) ? 'not allowed' : 'allowed'),
    width: '9rem',
  }
  return (
    <details>
      <summary>
        All {rows.length} observed syscalls, with their first and last time and the images that made them
      </summary>
      <Table
        name="Observed syscalls"
        rows={[...rows].sort((one, other) => Number(missing.has(other.name)) - Number(missing.has(one.name)))}
        keyOf={({ name }) => name}
        columns={seccomp.cr === null ? COLUMNS : [...COLUMNS.slice(0, 1), state, ...COLUMNS.slice(1)]}
        commands={commands}
        empty={<p>The broker recorded no single syscalls.</p>}
      />
    </details>
  )
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'Syscall', cell: ({ name }) => <code>{name}</code>, text: ({ name }) => name, width: '12rem' },
  { title: 'First seen', cell: ({ firstSeen }) => <Ago at={firstSeen} />, text: ({ firstSeen }) => firstSeen },
  { title: 'Last seen', cell: ({ lastSeen }) => <Ago at={lastSeen} />, text: ({ lastSeen }) => lastSeen },
  {
    title: 'Images',
    cell: ({ imageDigests }) =>
      imageDigests.length === 0 ? (
        <span class="faint">not recorded</span>
      ) : (
        imageDigests.map((digest) => (
          <>
            <Digest key={digest} digest={digest} />{' '}
          </>
        ))
      ),
    text: ({ imageDigests }) => imageDigests.join(' '),
  },
]
