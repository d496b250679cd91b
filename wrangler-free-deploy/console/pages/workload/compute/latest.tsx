/** The last sample of each container. */
import type { Commands } from '../../../parts/copy-as.tsx'
import { Empty } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { bytesText } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { href, hrefWith } from '../../../place.ts'
import { latencyText, millisText, percentText } from './series.ts'
import type { LatestContainer } from './waits.ts'

export function Latest({ containers, commands }: { containers: readonly LatestContainer[]; commands: Commands }) {
  return (
    <section class="section">
      <h2>Now</h2>
      <Table
        name="Last samples"
        rows={containers}
        keyOf={({ container_uid }) => container_uid}
        columns={COLUMNS}
        commands={commands}
        empty={
          <Empty title="No container is sampled now">
            Samples that are older than three of their intervals and a minute are left out.
          </Empty>
        }
      />
    </section>
  )
}

const ofText = (value: string, request: string, limit: string) => `${value} (${request} / ${limit})`

const cpuText = ({ cpu_usage_millis, cpu_request_millis, cpu_limit_millis }: LatestContainer) =>
  ofText(millisText(cpu_usage_millis), millisOrNone(cpu_request_millis), millisOrNone(cpu_limit_millis))
const memoryText = ({ mem_working_set, mem_request, mem_limit }: LatestContainer) =>
  ofText(bytesText(mem_working_set), bytesOrNone(mem_request), bytesOrNone(mem_limit))

const millisOrNone = (value: number | null) => (value === null ? 'none' : millisText(value))
const bytesOrNone = (value: number | null) => (value === null ? 'none' : bytesText(value))

const throttledText = ({ cpu_nr_periods: periods, cpu_nr_throttled: throttled }: LatestContainer): string =>
  periods === 0 ? 'no limit' : percentText((throttled / periods) * 100)

const COLUMNS: readonly Column<LatestContainer>[] = [
  {
    title: 'Container',
    cell: ({ pod_name, pod_uid, container, node }) => (
      <>
        <a href={hrefWith({ pod_uid, container })}>{pod_name}</a>{' '}
        <span class="kind">
          <bdi>{container}</bdi> on <a href={href(['node', node])}>{node}</a>
        </span>
      </>
    ),
    text: ({ pod_name, container }) => `${pod_name}/${container}`,
  },
  { title: 'CPU (request / limit)', cell: cpuText, text: ({ cpu_usage_millis }) => cpu_usage_millis, isNumber: true },
  {
    title: 'Memory (request / limit)',
    cell: memoryText,
    text: ({ mem_working_set }) => mem_working_set,
    isNumber: true,
  },
  { title: 'Throttled', cell: throttledText, text: throttledText, isNumber: true },
  {
    title: 'CPU pressure',
    cell: ({ cpu_psi_some10 }) => percentText(cpu_psi_some10),
    text: ({ cpu_psi_some10 }) => cpu_psi_some10,
    isNumber: true,
  },
  {
    title: 'Memory pressure',
    cell: ({ mem_psi_some10 }) => percentText(mem_psi_some10),
    text: ({ mem_psi_some10 }) => mem_psi_some10,
    isNumber: true,
  },
  {
    title: 'Run queue p99',
    cell: ({ runq_p99_us }) =>
      runq_p99_us === null ? (
        <span class="faint" title="The node has no contention probe">
          ?
        </span>
      ) : (
        latencyText(runq_p99_us)
      ),
    text: ({ runq_p99_us }) => runq_p99_us,
    isNumber: true,
  },
  { title: 'Sampled', cell: ({ updated_at }) => <Ago at={updated_at} />, text: ({ updated_at }) => updated_at },
]
