/** The containers that run or ran an image. */
import type { Answer } from '../../api/client.ts'
import { addressOf } from '../../api/client.ts'
import { Empty } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Workload } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import type { TabProps } from './image.tsx'

type Container = Answer<'/images/{digest}'>['workloads'][number]

export function ImageWorkloads({ digest, image }: TabProps) {
  return (
    <>
      {image?.truncated && (
        <p class="faint">The first {image.workloads.length}, those that run first; there are more.</p>
      )}
      <Table
        name="Where it runs"
        rows={image?.workloads ?? []}
        keyOf={(one) => [one.clusterId, one.namespace, one.workloadKind, one.workloadName, one.containerName].join('/')}
        columns={COLUMNS}
        commands={{ ctb: ['get', `/images/${digest}`], url: addressOf('/images/{digest}', { path: { digest } }) }}
        empty={
          <Empty title="No container is known">
            {image === null
              ? 'The inventory has no image with this digest.'
              : 'The containers that ran it are older than what is kept.'}
          </Empty>
        }
      />
    </>
  )
}

function State({ container: { running, ranAsInit, state, stateReason } }: { container: Container }) {
  if (running) return <Badge tone="info">runs</Badge>
  if (ranAsInit) return <span class="faint">ran as init container</span>
  return (
    <span class="faint">
      {state ?? 'not seen running'}
      {stateReason !== null && (
        <>
          , <bdi>{stateReason}</bdi>
        </>
      )}
    </span>
  )
}

const COLUMNS: readonly Column<Container>[] = [
  {
    title: 'Workload',
    cell: ({ namespace, workloadKind, workloadName }) => (
      <span class="some-room">
        <Workload namespace={namespace} kind={workloadKind} name={workloadName} />
      </span>
    ),
    text: ({ namespace, workloadKind, workloadName }) => `${namespace}/${workloadKind}/${workloadName}`,
    width: '20rem',
  },
  {
    title: 'Container',
    cell: ({ containerName, containerKind }) => (
      <>
        {containerName} {containerKind !== 'regular' && <span class="kind">{containerKind}</span>}
      </>
    ),
    text: ({ containerName }) => containerName,
    width: '11rem',
  },
  {
    title: 'State',
    cell: (container) => <State container={container} />,
    text: ({ running, state }) => (running ? 'running' : state),
    width: '11rem',
  },
  {
    title: 'Written as',
    cell: ({ imageRef }) => <span class="roomy">{imageRef}</span>,
    text: ({ imageRef }) => imageRef,
    width: '24rem',
  },
  {
    title: 'First seen',
    cell: ({ firstSeen }) => <Time at={firstSeen} />,
    text: ({ firstSeen }) => firstSeen,
    width: '10rem',
  },
  {
    title: 'Last seen',
    cell: ({ lastSeen }) => <Ago at={lastSeen} />,
    text: ({ lastSeen }) => lastSeen,
    width: '8rem',
  },
]
