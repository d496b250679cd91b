/** The time window: `since` and `until` in the address, as the API reads them. */
import { useState } from 'preact/hooks'
import { momentMs, zonedText } from '../parts/moment.ts'
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

/** A changed time counts when the field is left or Enter is pressed: while a year is typed, each digit is a valid one. */
function Moment({ name, label, value }: { name: 'since' | 'until'; label: string; value: string }) {
  const shown = inputText(momentMs(value, Date.now()))
  const take = ({ value: text, validity }: HTMLInputElement) => {
    if (text === shown || validity.badInput) return
    go(hrefWith({ [name]: text === '' ? '' : zonedText(Date.parse(text)), after: null }))
  }
  return (
    <label>
      {label}{' '}
      <input
        type="datetime-local"
        value={shown}
        onBlur={({ currentTarget }) => take(currentTarget)}
        onKeyDown={({ key, currentTarget }) => key === 'Enter' && take(currentTarget)}
      />
    </label>
  )
}

/** The value of a `datetime-local` field: local time without a zone. Empty for no time. */
function inputText(ms: number): string {
  if (Number.isNaN(ms)) return ''
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
