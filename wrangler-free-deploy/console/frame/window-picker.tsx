/** The time window: `since` and `until` in the address, as the API reads them. */
import { useState } from 'preact/hooks'
import { go, hrefWith, usePlace } from '../place.ts'

const PRESETS = [
  { since: '15m', label: '15 minutes' },
  { since: '1h', label: '1 hour' },
  { since: '24h', label: '24 hours' },
  { since: '7d', label: '7 days' },
  { since: '30d', label: '30 days' },
  { since: '', label: 'All that is kept' },
] as const
const CUSTOM = 'custom'

export interface Window {
  readonly since?: string
  readonly until?: string
}

/** The window of the address, as query parameters of a route. */
export function useWindow(): Window {
  const { query } = usePlace()
  const since = query.get('since')
  const until = query.get('until')
  return { ...(since && { since }), ...(until && { until }) }
}

export function WindowPicker() {
  const { since = '', until } = useWindow()
  const isPreset = until === undefined && PRESETS.some((one) => one.since === since)
  const [isOpen, setOpen] = useState(false)
  const isCustom = isOpen || !isPreset
  return (
    <div class="window-picker">
      <label>
        <span class="unseen">Time window</span>
        <select
          value={isCustom ? CUSTOM : since}
          onChange={({ currentTarget: { value } }) => {
            setOpen(value === CUSTOM)
            if (value !== CUSTOM) go(hrefWith({ since: value, until: '', after: null }))
          }}
        >
          {PRESETS.map((one) => (
            <option key={one.since} value={one.since}>
              {one.label}
            </option>
          ))}
          <option value={CUSTOM}>From … to …</option>
        </select>
      </label>
      {isCustom && (
        <>
          <Moment name="since" label="From" value={since} />
          <Moment name="until" label="To" value={until ?? ''} />
        </>
      )}
    </div>
  )
}

function Moment({ name, label, value }: { name: 'since' | 'until'; label: string; value: string }) {
  return (
    <label>
      {label}{' '}
      <input
        type="datetime-local"
        value={inputText(value)}
        onChange={({ currentTarget }) => {
          const date = new Date(currentTarget.value)
          const text = Number.isNaN(date.getTime()) ? '' : date.toISOString().replace('.000Z', 'Z')
          go(hrefWith({ [name]: text, after: null }))
        }}
      />
    </label>
  )
}

/** The value of a `datetime-local` field: local time without a zone. Empty for a relative time such as `7d`. */
function inputText(value: string): string {
  const ms = Date.parse(value)
  if (Number.isNaN(ms)) return ''
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}
