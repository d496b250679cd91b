/** Requests and limits compared with the use of all pods of the workload, over days. */
import { addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { counted } from '../../../parts/plural.ts'
import { reasonText, sentence } from '../../../parts/reason-words.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Count } from '../../../parts/text.tsx'
import { go, hrefWith, usePlace } from '../../../place.ts'
import { type Named, wholeName } from '../name.ts'
import { caveatsOf, fitText, type SizingRow, sizingRows, TEXTS } from './sizing-rows.ts'

const PATH = '/compute/workloads/{namespace}/{kind}/{name}'
const DAYS = [1, 7, 30] as const
const DEFAULT_DAYS = 7
/** Percentiles over days change slowly and are expensive to compute, so they are polled less often. */
const POLL_MS = 300_000

export function Sizing({ workload }: { workload: Named }) {
  const { namespace, kind, name } = workload
  const asked = usePlace().query.get('days')
  const days = DAYS.find((one) => String(one) === asked) ?? DEFAULT_DAYS
  const params = { path: { namespace, kind, name }, query: { days } }
  const reading = useRead(PATH, params, { pollMs: POLL_MS })
  return (
    <section class="section">
      <h2>Sizing</h2>
      <div class="table-tools">
        <label class="field-line">
          Days{' '}
          <select
            value={String(days)}
            onChange={({ currentTarget }) => go(hrefWith({ days: currentTarget.value }), { replace: true })}
          >
            {DAYS.map((one) => (
              <option key={one} value={one}>
                {counted(one, 'day')}
              </option>
            ))}
          </select>
        </label>
        <span class="faint">Calendar days of UTC with today, over all pods, earlier ones too.</span>
      </div>
      <Shown reading={reading}>
        {(sizing) => (
          <>
            <ul class="facts faint">
              {caveatsOf(sizing).map((caveat) => (
                <li key={caveat}>{`${caveat}.`}</li>
              ))}
            </ul>
            <Table
              name="Sizing"
              rows={sizingRows(sizing)}
              keyOf={({ container, resource }) => `${container} ${resource}`}
              columns={COLUMNS}
              commands={{ ctb: ['sizing', wholeName(workload), '--days', `${days}`], url: addressOf(PATH, params) }}
              empty={<Empty title="No container to size">{sentence(reasonText(sizing.reason ?? 'no_samples'))}.</Empty>}
            />
            <p class="faint">
              Percentiles are over the time of all pods: the smallest value that it does not exceed in 50, 95 or 99 % of
              it. CPU is the mean of a minute, memory its largest working set.
            </p>
          </>
        )}
      </Shown>
    </section>
  )
}

function quantity(title: string, of: (row: SizingRow) => number | null): Column<SizingRow> {
  return {
    title,
    cell: (row) => {
      const value = of(row)
      return value === null ? <span class="faint">–</span> : TEXTS[row.resource](value)
    },
    text: of,
    isNumber: true,
  }
}

const fitTexts = ({ fit }: SizingRow): string =>
  fit === null
    ? 'too few minutes to judge'
    : fit.length === 0
      ? 'no rule holds in the observed time'
      : fit.map(fitText).join('; ')

const COLUMNS: readonly Column<SizingRow>[] = [
  {
    title: 'Container',
    cell: ({ container, resource }) => (
      <>
        <bdi>{container}</bdi> <span class="kind">{resource}</span>
      </>
    ),
    text: ({ container, resource }) => `${container} ${resource === 'cpu' ? 'millicores' : 'bytes'}`,
  },
  quantity('p50', ({ p50 }) => p50),
  quantity('p95', ({ p95 }) => p95),
  quantity('p99', ({ p99 }) => p99),
  quantity('Maximum', ({ max }) => max),
  quantity('Request', ({ request }) => request),
  quantity('Limit', ({ limit }) => limit),
  {
    title: 'Fit',
    cell: (row) => (row.fit?.length ? fitTexts(row) : <span class="faint">{fitTexts(row)}</span>),
    text: fitTexts,
  },
  {
    title: 'Minutes',
    cell: ({ minutes }) => <Count value={minutes} />,
    text: ({ minutes }) => minutes,
    isNumber: true,
  },
  { title: 'Pods', cell: ({ pods }) => <Count value={pods} />, text: ({ pods }) => pods, isNumber: true },
]
