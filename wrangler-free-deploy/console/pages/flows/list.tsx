/** Flows: observed connections by filter and time window, or live as they are stored. */
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { type Answer, addressOf } from '../../api/client.ts'
import { itemsOf, POLL_MS, usePages } from '../../api/query.ts'
import { useWindow } from '../../frame/window-picker.tsx'
import { useMedia } from '../../hooks.ts'
import { FilterBar } from '../../parts/filter-bar.tsx'
import { FLOW_FIELDS, flowFieldOf, useFlowFilter } from '../../parts/flow-filter.ts'
import { Empty, Shown } from '../../parts/states.tsx'
import { Table } from '../../parts/table.tsx'
import { Time, toMs } from '../../parts/time.tsx'
import { go, href, hrefWith, usePlace } from '../../place.ts'
import { COLUMNS, NARROW_COLUMNS } from './columns.tsx'
import { flowArguments } from './commands.ts'
import { CsvButton } from './csv-button.tsx'
import { Detail } from './detail.tsx'
import { type Flow, keyOf, LIST_FIELDS, together } from './flow.ts'
import { LiveBar } from './live-bar.tsx'
import { useFollow } from './use-follow.ts'
import { isOlderThanKept } from './window.ts'
import './flows.css'

const PAGE_ROWS = 200
const NARROW = '(max-width: 640px)'
const NARROW_ROW_PX = 84
/** Polling interval while the broker has no capacity for another follower. */
const BUSY_POLL_MS = 10_000
const count = new Intl.NumberFormat()

export default function Flows() {
  const { query } = usePlace()
  const filter = useFlowFilter()
  const window = useWindow()
  const isLive = query.get('live') === 'true' && window.until === undefined
  const isOldest = query.get('order') === 'oldest' && !isLive
  const asked = { ...filter, ...window, ...(isOldest && { order: 'oldest' as const }) }
  const toStart = useRef<() => unknown>(() => {})
  const live = useFollow(filter, isLive, () => toStart.current())
  const phase = live?.state.phase
  const reading = usePages(
    '/flows',
    { query: { ...asked, limit: PAGE_ROWS, fields: LIST_FIELDS.join(',') } },
    { pollMs: phase === 'busy' ? BUSY_POLL_MS : isLive ? 0 : POLL_MS },
  )
  toStart.current = reading.toStart
  useEffect(() => {
    // Live flows are part of the list once it is read again.
    if (isLive) return () => void toStart.current()
    return undefined
  }, [isLive])

  const listed = itemsOf(reading) as readonly Flow[]
  const isFull = (live?.state.dropped ?? 0) > 0
  // Further down, flows may be missing between the list and the live ones, so live flows appear only at the top.
  const isAtTop = live !== null && phase !== 'busy' && reading.firstIndex === 0
  const rows = useMemo(
    () => (isAtTop ? together(live.state.rows, isFull ? [] : listed, live.state.updates) : listed),
    [live?.state, listed, isAtTop],
  )
  // While flows arrive live, the data is as fresh as the newest token.
  const updatedAt = Math.max(reading.dataUpdatedAt, live?.state.asOfMs ?? 0)
  const known = { ...reading, dataUpdatedAt: updatedAt }
  const isNarrow = useMedia(NARROW)
  const uuid = query.get('flow')
  const at = query.get('at')
  const isSelected = (flow: Flow) => flow.uuid === uuid && flow.time_stamp === at
  const follow = isLive ? { follow: true } : {}
  return (
    <>
      <h1>Flows</h1>
      <FilterBar fields={FLOW_FIELDS} fieldOf={flowFieldOf} />
      <Switches isLive={isLive} isOldest={isOldest} hasEnd={window.until !== undefined} />
      {live && <LiveBar live={live} />}
      <Shown reading={known}>
        {({ pages }) => (
          <div class={uuid && at ? 'flows with-detail' : 'flows'}>
            <div class="section">
              <Known pages={pages} hasMore={reading.hasNextPage} since={window.since} />
              <Table
                name="Flows"
                rows={rows}
                columns={isNarrow ? NARROW_COLUMNS : COLUMNS}
                rowPx={isNarrow ? NARROW_ROW_PX : undefined}
                keyOf={keyOf}
                onRow={(flow) => go(hrefWith({ flow: flow.uuid, at: flow.time_stamp }))}
                isSelected={isSelected}
                commands={{
                  ctb: flowArguments({ query: asked, isLive }),
                  url: addressOf('/flows', { query: isLive ? { ...filter, ...follow } : asked }),
                }}
                csv={<CsvButton query={asked} />}
                empty={<NoFlows page={pages[0]} hasFilter={Object.keys(filter).length > 0} isLive={isLive} />}
                {...(!isFull && { paged: reading })}
              />
            </div>
            {uuid && at && <Detail uuid={uuid} at={at} row={rows.find(isSelected)} />}
          </div>
        )}
      </Shown>
    </>
  )
}

function Switches({ isLive, isOldest, hasEnd }: { isLive: boolean; isOldest: boolean; hasEnd: boolean }) {
  return (
    <div class="flow-switches">
      <label>
        Order{' '}
        <select
          value={isOldest ? 'oldest' : 'newest'}
          disabled={isLive}
          onChange={({ currentTarget: { value } }) => go(hrefWith({ order: value === 'oldest' ? value : null }))}
        >
          <option value="newest">newest first</option>
          <option value="oldest">oldest first</option>
        </select>
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={isLive}
          disabled={hasEnd}
          onChange={() => go(hrefWith({ live: isLive ? null : 'true', order: null }))}
        />{' '}
        Live
      </label>
      <span class="faint">
        {hasEnd
          ? 'The time window has an end, so no new flow can be in it.'
          : isLive
            ? 'New flows come on top, in the order in which they are stored.'
            : ''}
      </span>
    </div>
  )
}

type Page = Answer<'/flows'>

/** Limits of the list: a time before the stored flows, and flows that the filter could not be applied to. */
function Known({ pages, hasMore, since }: { pages: readonly Page[]; hasMore: boolean; since: string | undefined }) {
  const observedSince = pages[0]?.observedSince ?? null
  const unstamped = pages.reduce((sum, page) => sum + page.unstamped, 0)
  return (
    <>
      {observedSince !== null && since !== undefined && isOlderThanKept(since, toMs(observedSince), Date.now()) && (
        <p class="note">
          Flows are stored from <Time at={observedSince} /> on. The window begins earlier, and nothing is known here of
          that time.
        </p>
      )}
      {unstamped > 0 && (
        <p class="note">
          {hasMore && 'Up to the last row here, '}
          {count.format(unstamped)} {unstamped === 1 ? 'flow is' : 'flows are'} left out: the workload, the labels or
          the node that the filter asks for were not recorded, so nobody can say whether it matches.
        </p>
      )}
    </>
  )
}

const NO_FILTER = Object.fromEntries(FLOW_FIELDS.map(({ name }) => [name, null]))

function NoFlows({ page, hasFilter, isLive }: { page: Page | undefined; hasFilter: boolean; isLive: boolean }) {
  const { query } = usePlace()
  const hasWindow = query.has('since') || query.has('until')
  if (page?.observedSince === null)
    return (
      <Empty title="No flow was ever stored">
        Agents post the connections that they see, and none has done so yet. <a href={href(['nodes'])}>Nodes</a> shows
        whether they report at all.
      </Empty>
    )
  return (
    <Empty title={hasFilter ? 'No flow matches' : 'No flow was first seen in this window'}>
      <p>
        A flow counts at the time when it was first seen. A connection that was opened earlier, or one like it, is not
        listed again.{isLive && ' New ones will come here.'}
      </p>
      <p class="flow-links">
        {hasFilter && <a href={hrefWith({ ...NO_FILTER, after: null })}>Remove all filters</a>}
        {hasWindow && <a href={hrefWith({ since: null, until: null })}>Search all that is kept</a>}
      </p>
    </Empty>
  )
}
