/** One node: its last report, its coverage gaps, load, findings and pods. */
import { type Answer, addressOf } from '../../api/client.ts'
import { type Reading, useRead } from '../../api/query.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { causeText, gapText } from '../../parts/gap-words.ts'
import { numberText } from '../../parts/plural.ts'
import { Empty, Failure, Loading, Shown, Stale } from '../../parts/states.tsx'
import { Badge, bytesText, Count } from '../../parts/text.tsx'
import { Ago, durationText } from '../../parts/time.tsx'
import { href, usePlace } from '../../place.ts'
import { NoFindings } from '../findings/list.tsx'
import { FindingTable } from '../findings/table.tsx'
import type { PageProps } from '../index.ts'
import { NodeContention } from './contention.tsx'
import { NodePods } from './pods.tsx'
import '../lists.css'

type Status = Answer<'/node/status'>
type NodeGaps = NonNullable<Answer<'/coverage'>['nodes']>
type Compute = Answer<'/compute/nodes'>['nodes'][number]

const MS_PER_SECOND = 1_000
const MAX_NODES = 500

const TABS = [
  { name: null, title: 'Overview' },
  { name: 'pods', title: 'Pods' },
  { name: 'contention', title: 'Contention' },
] as const

export default function NodePage({ rest: [node = ''] }: PageProps) {
  const asked = usePlace().query.get('tab')
  const tab = TABS.find(({ name }) => name === asked) ?? TABS[0]
  const status = useRead('/node/status', {})
  return (
    <>
      <h1>{node}</h1>
      <Reports node={node} reading={status} />
      <nav class="tabs" aria-label="Parts of the node">
        {TABS.map(({ name, title }) => (
          <a
            key={title}
            href={href(['node', node], { tab: name })}
            aria-current={tab.name === name ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      {tab.name === null && <Overview node={node} />}
      {tab.name === 'pods' && <NodePods node={node} />}
      {tab.name === 'contention' && <NodeContention node={node} />}
    </>
  )
}

function Reports({ node, reading }: { node: string; reading: Reading<Status> }) {
  const { data, error, refetch } = reading
  if (data === undefined) return error === null ? <Loading /> : <Failure error={error} retry={refetch} />
  const found = data.nodes.find((one) => one.node === node)
  if (found === undefined)
    return (
      <p class="verdict" role="status">
        <Badge tone="warn">Not known</Badge> No pod and no heartbeat of a node with this name is stored: it never
        reported, or longer ago than what is kept. <a href={href(['nodes'])}>All nodes</a>
      </p>
    )
  const { stale, alivePods, lastPodPostAt, lastHeartbeatAt } = found
  return (
    <>
      <p class="verdict" role="status">
        {stale ? <Badge tone="bad">Silent</Badge> : <Badge tone="good">Reports</Badge>}{' '}
        {stale
          ? `No post of its pods came for ${durationText(data.staleAfterSecs * MS_PER_SECOND)}: ` +
            'what happens on it is not seen.'
          : `${numberText(alivePods)} live ${alivePods === 1 ? 'pod' : 'pods'}.`}{' '}
        <span class="faint">
          Newest post of a pod <Ago at={lastPodPostAt} />, newest heartbeat <Ago at={lastHeartbeatAt} />.
        </span>
      </p>
      <Stale reading={reading} />
    </>
  )
}

function Overview({ node }: { node: string }) {
  const coverage = useRead('/coverage', { query: { part: 'nodes', include_known: true, limit: MAX_NODES } })
  const compute = useRead('/compute/nodes', {})
  const asked = { query: { node } }
  const findings = useRead('/compute/findings', asked)
  return (
    <>
      <div class="cards wide">
        <section class="card" aria-labelledby="gaps">
          <h2 id="gaps">What is not known on it</h2>
          <Shown reading={coverage}>{({ nodes }) => <Gaps node={node} part={nodes} />}</Shown>
          <div>
            <CopyAs
              ctb={['coverage', '--part', 'nodes']}
              url={addressOf('/coverage', { query: { part: 'nodes', include_known: true } })}
            />
          </div>
        </section>
        <section class="card" aria-labelledby="load">
          <h2 id="load">CPU and memory</h2>
          <Shown reading={compute}>{({ nodes }) => <Load of={nodes.find((one) => one.node === node)} />}</Shown>
          <div>
            <CopyAs ctb={['nodes']} url={addressOf('/compute/nodes', {})} />
          </div>
        </section>
      </div>
      <div class="section">
        <h2 id="findings">Containers that wait</h2>
        <Shown reading={findings}>
          {(answer) => (
            <FindingTable
              findings={answer.findings}
              commands={{ ctb: ['findings', '--node', node], url: addressOf('/compute/findings', asked) }}
              empty={<NoFindings answer={answer} />}
            />
          )}
        </Shown>
      </div>
    </>
  )
}

function Gaps({ node, part }: { node: string; part: NodeGaps | null }) {
  const found = part?.items.find((one) => one.node === node)
  if (found === undefined)
    return (
      <p class="faint">
        {part?.nextAfter
          ? 'There are more nodes than one page has, and this one is not on it. '
          : 'Nothing of this node is stored. '}
        <a href={href(['health'], { part: 'nodes' })}>All nodes with something missing</a>
      </p>
    )
  const { missing, watchedContainers, factsAt, drainedAt, reasonDetail } = found
  return (
    <>
      {missing.length === 0 ? (
        <p>
          <Badge tone="good">nothing is missing</Badge>
        </p>
      ) : (
        <p>
          {missing.map((name) => (
            <span key={name}>
              <Badge tone={name === 'silent' ? 'bad' : 'warn'}>{gapText(name)}</Badge>{' '}
            </span>
          ))}
          {reasonDetail !== null && (
            <span class="faint">
              {causeText(reasonDetail.cause)}
              {reasonDetail.podName !== null && `, ${reasonDetail.podName}`}
            </span>
          )}
        </p>
      )}
      <dl class="pairs">
        <dt>Watched containers</dt>
        <dd>
          <Count value={watchedContainers} />
        </dd>
        <dt>Told its platform</dt>
        <dd>
          <Ago at={factsAt} />
        </dd>
        <dt>Posted its denials</dt>
        <dd>
          <Ago at={drainedAt} />
        </dd>
      </dl>
    </>
  )
}

const percent = (value: number) => `${value.toFixed(1)} %`

function Load({ of: one }: { of: Compute | undefined }) {
  if (one === undefined)
    return (
      <Empty title="Not watched">
        The node has sent no heartbeat of CPU and memory within an hour, or its agent does not watch them.
      </Empty>
    )
  return (
    <dl class="pairs">
      <dt>Size</dt>
      <dd>
        {one.cpu_cores} CPUs, {bytesText(one.memory_bytes)}
      </dd>
      <dt title="The share of time in which some or all tasks waited, over ten seconds">Waiting for CPU</dt>
      <dd>
        some {percent(one.cpu_some10)}, all {percent(one.cpu_full10)}
      </dd>
      <dt>Waiting for memory</dt>
      <dd>
        some {percent(one.mem_some10)}, all {percent(one.mem_full10)}
      </dd>
      <dt>Context switches</dt>
      <dd>{numberText(Math.round(one.ctxt_per_sec))} a second</dd>
      <dt>Samples of containers</dt>
      <dd>{one.compute_enabled ? 'on' : one.compute_supported ? 'off' : 'the kernel does not support them'}</dd>
      <dt>Who waits for whom</dt>
      <dd>{one.contention_loaded ? 'watched' : 'not watched'}</dd>
      <dt>Heartbeat</dt>
      <dd>
        <Ago at={one.updated_at} />
      </dd>
    </dl>
  )
}
