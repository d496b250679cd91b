/** The containers and the images that they run, or ran last. */

import { verdictWord } from '../../../parts/finding-words.ts'
import { Empty } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, Digest } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { tabHref } from '../links.ts'
import { wholeName } from '../name.ts'
import type { Profile } from '../words.ts'

type Container = Profile['dimensions']['images']['containers'][number]
type Image = Container['running'][number]

interface Row {
  readonly container: Container
  readonly image: Image
  readonly isRunning: boolean
  readonly signature: string
}

export function Containers({ profile }: { profile: Profile }) {
  const { images } = profile.dimensions
  const signatures = images.supplyChain?.digests ?? []
  const rows = images.containers.flatMap((container) =>
    [container.running, container.previous].flatMap((list, index) =>
      list.map(
        (image): Row => ({
          container,
          image,
          isRunning: index === 0,
          signature: verdictWord(
            signatures.find((one) => one.digest === image.digest && one.container === container.name)?.verdict ?? null,
          ).word,
        }),
      ),
    ),
  )
  const { workload } = profile
  return (
    <section class="section">
      <h2>Containers and images</h2>
      {images.truncated && <p class="faint">There are more containers than the broker lists.</p>}
      <Table
        name={`Containers of ${workload.name}`}
        rows={rows}
        keyOf={({ container, image }) => `${container.name} ${image.digest}`}
        columns={columnsOf(workload)}
        commands={{ ctb: ['workload', wholeName(workload)] }}
        empty={
          <Empty title="No container is in the inventory">
            The inventory comes from the pods that agents post; one without containers leaves it empty.
          </Empty>
        }
      />
    </section>
  )
}

const stateText = ({ image: { state, stateReason }, isRunning }: Row): string =>
  isRunning ? [state ?? 'not known', stateReason].filter(Boolean).join(', ') : 'earlier'

const columnsOf = (workload: Profile['workload']): readonly Column<Row>[] => [
  {
    title: 'Container',
    cell: ({ container: { name, kind } }) => (
      <>
        <bdi>{name}</bdi> {kind !== 'regular' && <span class="kind">{kind}</span>}
      </>
    ),
    text: ({ container: { name } }) => name,
  },
  {
    title: 'State',
    cell: (row) => (
      <>
        <Badge tone={row.isRunning && row.image.state === 'running' ? 'good' : 'plain'}>{stateText(row)}</Badge>
        {row.isRunning && row.container.mixedDigests && (
          <>
            {' '}
            <Badge tone="warn" title="Its pods run several images">
              mixed
            </Badge>
          </>
        )}
      </>
    ),
    text: stateText,
  },
  {
    title: 'Image',
    cell: ({ image: { imageRef, digest } }) => (
      <>
        <code class="wrap">{imageRef}</code> <Digest digest={digest} />
      </>
    ),
    text: ({ image: { imageRef } }) => imageRef,
  },
  {
    title: 'Vulnerabilities',
    cell: ({ image: { digest } }) => <a href={tabHref(workload, 'vulnerabilities', { image: digest })}>list</a>,
  },
  {
    title: 'Signature',
    cell: ({ image: { digest }, signature, isRunning }) =>
      isRunning ? (
        <a href={tabHref(workload, 'trust', { image: digest })}>{signature}</a>
      ) : (
        <span class="faint">–</span>
      ),
    text: ({ signature, isRunning }) => (isRunning ? signature : ''),
  },
  {
    title: 'First seen',
    cell: ({ image: { firstSeen } }) => <Ago at={firstSeen} />,
    text: ({ image: { firstSeen } }) => firstSeen,
  },
  {
    title: 'Last seen',
    cell: ({ image: { lastSeen } }) => <Ago at={lastSeen} />,
    text: ({ image: { lastSeen } }) => lastSeen,
  },
]
