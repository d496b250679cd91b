/** The reason why something is not known, with the row that caused it. */

import { reasonText } from '../../parts/reason-words.ts'
import { Ago } from '../../parts/time.tsx'
import { causeText, placeText, type ReasonDetail } from './words.ts'

export function Because({ reason, detail }: { reason: string; detail: ReasonDetail | null | undefined }) {
  const place = detail ? placeText(detail) : ''
  return (
    <span>
      {reasonText(reason)}
      {detail && (
        <span class="faint">
          {' '}
          (
          {place !== '' && (
            <>
              <bdi>{place}</bdi>:{' '}
            </>
          )}
          {causeText(detail)}
          {detail.at !== null && (
            <>
              {' '}
              <Ago at={detail.at} />
            </>
          )}
          )
        </span>
      )}
    </span>
  )
}
