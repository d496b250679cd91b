/** How a workload was confined at two times. */
import { type Row, rowOf } from './rows.ts'

interface Field {
  readonly field: string
  readonly from?: unknown
  readonly to?: unknown
}

interface Profile {
  readonly name: string
  readonly defaultAction: string
  readonly hash: string
}

export interface Confinement {
  readonly podSecurity: {
    readonly containers: readonly { readonly name: string; readonly fields: readonly Field[] }[]
    readonly containersAdded: readonly string[]
    readonly containersRemoved: readonly string[]
    readonly level: { readonly from: string | null; readonly to: string | null } | null
    readonly pod: readonly Field[]
  }
  readonly seccompProfile: { readonly from: Profile | null; readonly to: Profile | null } | null
  readonly weakened: readonly {
    readonly container: string | null
    readonly newlyFailing: readonly string[]
    readonly levelFrom: string
    readonly levelTo: string
  }[]
  readonly isSeccompWeakened: boolean
}

const PART = 'confinement'

export const confinementRows = ({ podSecurity, seccompProfile, weakened, isSeccompWeakened }: Confinement): Row[] => [
  ...weakened.map(({ container, newlyFailing, levelFrom, levelTo }) =>
    rowOf(PART, 'weakened', `${placeOf(container)}: ${newlyFailing.join(', ')}`, levelFrom, levelTo),
  ),
  ...(seccompProfile === null
    ? []
    : [
        rowOf(
          PART,
          isSeccompWeakened ? 'weakened' : 'changed',
          'seccomp profile',
          seccompProfile.from && profileText(seccompProfile.from),
          seccompProfile.to && profileText(seccompProfile.to),
        ),
      ]),
  ...(podSecurity.level === null
    ? []
    : [rowOf(PART, 'changed', 'pod security level', podSecurity.level.from, podSecurity.level.to)]),
  ...podSecurity.containersAdded.map((name) => rowOf(PART, 'added', placeOf(name))),
  ...podSecurity.containersRemoved.map((name) => rowOf(PART, 'removed', placeOf(name))),
  ...podSecurity.pod.map((field) => fieldRow(null, field)),
  ...podSecurity.containers.flatMap(({ name, fields }) => fields.map((field) => fieldRow(name, field))),
]

const placeOf = (container: string | null): string => (container === null ? 'pod' : `container ${container}`)

const fieldRow = (container: string | null, { field, from, to }: Field): Row =>
  rowOf(PART, 'changed', `${placeOf(container)}: ${field}`, valueText(from), valueText(to))

/** Null also where the field is absent. */
const valueText = (value: unknown): string | null =>
  value === null || value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value)

const profileText = ({ name, defaultAction, hash }: Profile): string => `${name} ${defaultAction} ${hash.slice(0, 12)}`
