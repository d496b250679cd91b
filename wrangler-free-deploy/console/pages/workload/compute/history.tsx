/** The charts of one container of a pod. */
import { useMemo } from 'preact/hooks'
import { addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Empty, Shown } from '../../../parts/states.tsx'
import { go, hrefWith, usePlace } from '../../../place.ts'
import { ChartFigure } from './chart.tsx'
import { chartsOf, containersOf, type History } from './series.ts'

const PATH = '/compute/history/{pod_uid}'
const DEFAULT_MINUTES = 60
const SECONDS_PER_MINUTE = 60
/** A day of minutes is about 60 kB compressed, for each container. */
const SPANS = [
  { minutes: 60, text: '1 hour' },
  { minutes: 360, text: '6 hours' },
  { minutes: 1_440, text: '1 day' },
] as const

export function HistoryCharts({ podUid }: { podUid: string }) {
  const { query } = usePlace()
  const minutes = SPANS.find((one) => String(one.minutes) === query.get('minutes'))?.minutes ?? DEFAULT_MINUTES
  const params = { path: { pod_uid: podUid }, query: { minutes } }
  const reading = useRead(PATH, params)
  return (
    <>
      <div class="table-tools">
        <label class="field-line">
          Span{' '}
          <select
            value={String(minutes)}
            onChange={({ currentTarget }) => go(hrefWith({ minutes: currentTarget.value }), { replace: true })}
          >
            {SPANS.map((span) => (
              <option key={span.minutes} value={span.minutes}>
                {span.text}
              </option>
            ))}
          </select>
        </label>
        <span class="grow" />
        <CopyAs url={addressOf(PATH, params)} />
      </div>
      <Shown reading={reading}>{(history) => <Charts history={history} minutes={minutes} />}</Shown>
    </>
  )
}

function Charts({ history: { rows }, minutes }: { history: History; minutes: number }) {
  const asked = usePlace().query.get('container')
  const containers = containersOf(rows)
  const container = containers.find((one) => one === asked) ?? containers[0]
  const drawn = useMemo(() => chartsOf(rows, container ?? ''), [rows, container])
  if (container === undefined)
    return (
      <Empty title="No minute is stored">
        Nothing came of this pod in the last {minutes} minutes, or the broker keeps no history. A longer span may have
        some.
      </Empty>
    )
  return (
    <>
      {containers.length > 1 && (
        <div class="table-tools">
          <label class="field-line">
            Container{' '}
            <select
              value={container}
              onChange={({ currentTarget }) => go(hrefWith({ container: currentTarget.value }), { replace: true })}
            >
              {containers.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </label>
        </div>
      )}
      <div class="charts">
        {drawn.charts.map((chart) => (
          <ChartFigure
            key={chart.title}
            chart={chart}
            times={drawn.times}
            about={`container ${container}`}
            spanSeconds={minutes * SECONDS_PER_MINUTE}
          />
        ))}
      </div>
      <p class="faint">A gap is a minute that nobody posted: it is not known, and not zero.</p>
    </>
  )
}
