/** `POST /networkpolicy/try`: judges observed flows. It stores and applies nothing. */
import { call, errorOf } from '../../../api/client.ts'
import type { components } from '../../../api/schema.d.ts'

export type Trial = components['schemas']['PolicyTrial']

/** `all` is without a limit. */
export const DAYS = ['1', '7', '30', 'all'] as const
export const DEFAULT_DAYS = '7'

/** The body limit of the route. */
export const MAX_BYTES = 1024 * 1024

export const tryAddress = (days: string): string =>
  `${window.location.origin}/networkpolicy/try${days === 'all' ? '' : `?since=${days}d`}`

export const daysText = (days: string): string =>
  days === 'all' ? 'all that is kept' : days === '1' ? '1 day' : `${days} days`

/** @throws ApiError with the error in the text and its place */
export async function tryPolicies(text: string, days: string): Promise<Trial> {
  const response = await call(
    new Request(tryAddress(days), {
      method: 'POST',
      headers: { 'content-type': 'application/yaml', accept: 'application/json' },
      body: text,
    }),
  )
  const answer = await response.text()
  if (!response.ok) throw errorOf(response, answer)
  return JSON.parse(answer) as Trial
}
