/** Findings about CPU and memory as a table, for the cluster or for one node. */
import type { ComponentChildren } from 'preact'
import type { Answer } from '../../api/client.ts'
import type { Commands } from '../../parts/copy-as.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, type Tone } from '../../parts/text.tsx'
import { Ago } from '../../parts/time.tsx'
import { href } from '../../place.ts'

type Finding = Answer<'/compute/findings'>['findings'][number]

interface FindingTableProps {
  readonly findings: readonly Finding[]
  readonly commands: Commands
  readonly empty: ComponentChildren
}

const TONES: Readonly<Record<Finding['severity'], Tone>> = { critical: 'bad', high: 'warn', medium: 'info' }
const RANKS: readonly Finding['severity'][] = ['critical', 'high', 'medium']

export function FindingTable({ findings, commands, empty }: FindingTableProps) {
  const rows = [...findings].sort((one, other) => RANKS.indexOf(one.severity) - RANKS.indexOf(other.severity))
  return (
    <Table
      name="Findings of CPU and memory"
      rows={rows}
      keyOf={({ victim, kind }) => `${victim.container_uid} ${kind}`}
      columns={COLUMNS}
      commands={commands}
      empty={empty}
    />
  )
}

const KINDS: Readonly<Record<Finding['kind'], string>> = {
  'noisy-neighbor': 'waits for a neighbour',
  'cpu-throttled': 'held back by its own CPU limit',
  'cpu-contended': 'waits for CPU, nobody can be named',
  'memory-pressure': 'waits for memory of its node',
  'memory-limit-thrash': 'keeps hitting its own memory limit',
}

function Culprit({ culprit }: { culprit: Finding['culprit'] }) {
  if (culprit === null) return <span class="faint">nobody named</span>
  const share = `${Math.round(culprit.blame_share * 100)} %`
  return (
    <>
      {culprit.namespace === null || culprit.pod_name === null ? (
        <bdi>{culprit.ref}</bdi>
      ) : (
        <a href={href(['search'], { q: `${culprit.namespace}/${culprit.pod_name}` })}>{culprit.ref}</a>
      )}{' '}
      <span class="faint">{share}</span>
    </>
  )
}

const COLUMNS: readonly Column<Finding>[] = [
  {
    title: 'Severity',
    cell: ({ severity }) => <Badge tone={TONES[severity]}>{severity}</Badge>,
    text: ({ severity }) => severity,
    width: '6.5rem',
  },
  {
    title: 'Container',
    cell: ({ victim: { namespace, pod_name, container } }) => (
      <>
        <a href={href(['search'], { q: `${namespace}/${pod_name}` })}>
          <bdi>{namespace}</bdi>/<bdi>{pod_name}</bdi>
        </a>{' '}
        <span class="kind">{container}</span>
      </>
    ),
    text: ({ victim: { namespace, pod_name, container } }) => `${namespace}/${pod_name}/${container}`,
    width: '22rem',
  },
  { title: 'What', cell: ({ kind }) => KINDS[kind], text: ({ kind }) => kind, width: '16rem' },
  {
    title: 'Because of',
    cell: ({ culprit }) => <Culprit culprit={culprit} />,
    text: ({ culprit }) => culprit?.ref,
    width: '18rem',
  },
  {
    title: 'Node',
    cell: ({ victim: { node } }) => <a href={href(['node', node])}>{node}</a>,
    text: ({ victim: { node } }) => node,
    width: '11rem',
  },
  {
    title: 'Since',
    cell: ({ first_seen }) => <Ago at={first_seen} />,
    text: ({ first_seen }) => first_seen,
    width: '7rem',
  },
  { title: 'In words', cell: ({ message }) => message, text: ({ message }) => message, width: '30rem' },
]
