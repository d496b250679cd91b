/** The live pods of a node. */
import { type Answer, addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Badge, Workload } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import { href } from '../../place.ts'

type Pod = Answer<'/pod/list/{node}'>[number]

export function NodePods({ node }: { node: string }) {
  const asked = { path: { node } }
  const reading = useRead('/pod/list/{node}', asked)
  return (
    <div class="section">
      <h2 id="pods" class="unseen">
        Pods
      </h2>
      <Shown reading={reading}>
        {(pods) => (
          <Table
            name="Pods of the node"
            rows={pods}
            keyOf={({ pod_namespace, pod_name }) => `${pod_namespace}/${pod_name}`}
            columns={COLUMNS}
            commands={{ ctb: ['get', `/pod/list/${node}`], url: addressOf('/pod/list/{node}', asked) }}
            empty={
              <Empty title="No live pod is known">
                The node has none, it never reported, or it fell silent and its pods were marked dead.
              </Empty>
            }
          />
        )}
      </Shown>
    </div>
  )
}

const COLUMNS: readonly Column<Pod>[] = [
  {
    title: 'Pod',
    cell: ({ pod_namespace, pod_name }) =>
      pod_namespace === null ? (
        pod_name
      ) : (
        <a href={href(['flows'], { pod: `${pod_namespace}/${pod_name}` })} title="Flows of the pod">
          <span class="faint">
            <bdi>{pod_namespace}</bdi>/
          </span>
          <bdi>{pod_name}</bdi>
        </a>
      ),
    text: ({ pod_namespace, pod_name }) => `${pod_namespace ?? ''}/${pod_name}`,
    width: '24rem',
  },
  {
    title: 'Workload',
    cell: ({ pod_namespace, workload_kind, workload_name }) =>
      pod_namespace === null || workload_kind === null || workload_name === null ? (
        <span class="faint">none</span>
      ) : (
        <Workload namespace={pod_namespace} kind={workload_kind} name={workload_name} />
      ),
    text: ({ pod_namespace, workload_kind, workload_name }) =>
      workload_name === null ? null : `${pod_namespace}/${workload_kind}/${workload_name}`,
    width: '22rem',
  },
  {
    title: 'Address',
    cell: ({ pod_ips, pod_ip, host_network }) => (
      <>
        <span title={pod_ips.join(', ')}>{pod_ip}</span> {host_network === true && <Badge>of the node</Badge>}
      </>
    ),
    text: ({ pod_ips }) => pod_ips.join(' '),
    width: '11rem',
  },
  {
    title: 'Syscalls recorded',
    cell: ({ capture_level }) => capture_level ?? <span class="faint">not known</span>,
    text: ({ capture_level }) => capture_level,
    width: '9rem',
  },
  {
    title: 'Started',
    cell: ({ started_at }) => <Time at={started_at} />,
    text: ({ started_at }) => started_at,
    width: '10rem',
  },
  {
    title: 'Newest post',
    cell: ({ time_stamp }) => <Ago at={time_stamp} />,
    text: ({ time_stamp }) => time_stamp,
    width: '8rem',
  },
]
