/** A text that the broker refused to generate: the reasons, and a check box to generate it anyway. */
import { ApiError } from '../../api/client.ts'
import { Failure } from '../../parts/states.tsx'
import { Check } from './controls.tsx'
import { type Acknowledge, refusalOf } from './text/refusal.ts'

const CONFLICT = 409
const MAX_SHOWN = 50

const YES: Readonly<Record<Acknowledge, string>> = {
  acknowledgePartial: 'Make it from what is there: it may cut off or block what was not seen.',
  acknowledgeClusterWide: 'Make it although it binds the images of these names in other namespaces, too.',
}

export interface RefusedProps {
  readonly error: Error
  readonly retry?: () => unknown
  /** Label of the check box for incomplete data; by default it says that something may be cut off or blocked. */
  readonly partial?: string | undefined
}

export function Refused({ error, retry, partial }: RefusedProps) {
  if (!(error instanceof ApiError) || error.status !== CONFLICT)
    return <Failure error={error} {...(retry && { retry })} />
  const { about, reasons, advice, acknowledge } = refusalOf(error.body)
  const yes = acknowledge === 'acknowledgePartial' && partial !== undefined ? partial : acknowledge && YES[acknowledge]
  return (
    <div class="refused" role="alert">
      <p class="empty-title">The broker has not made it: what is known is not complete</p>
      {about !== '' && <p>{sentence(about)}:</p>}
      <ul>
        {reasons.slice(0, MAX_SHOWN).map((reason) => (
          <li key={reason} class="wrap">
            {reason}
          </li>
        ))}
      </ul>
      {reasons.length > MAX_SHOWN && <p>And {reasons.length - MAX_SHOWN} more.</p>}
      {advice.map((line) => (
        <p key={line} class="wrap">
          {sentence(line.replaceAll('min_days', '“Days observed, at least”'))}.
        </p>
      ))}
      {acknowledge !== null && <Check name={acknowledge} label={yes} />}
    </div>
  )
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
