import { type Colour, timeText } from '../output/cell.ts'

export interface ReasonDetail {
  readonly cause: string
  readonly podName: string | null
  readonly nodeName: string | null
  readonly at: string | null
}

/** A file that no image shipped. */
export const ORIGIN_COLOURS: Readonly<Record<string, Colour>> = {
  memfd: 'red',
  writableLayer: 'red',
  deleted: 'yellow',
}

/** A reason, and the pod, node and time that decided it: `capture_gap (late_start, pod web-1, node node-1)`. */
export function reasonText(reason: string | null, detail: ReasonDetail | null): string {
  if (detail === null) return reason ?? 'unknown'
  const { cause, podName, nodeName, at } = detail
  const parts = [
    ...(cause === reason ? [] : [cause]),
    ...(podName === null ? [] : [`pod ${podName}`]),
    ...(nodeName === null ? [] : [`node ${nodeName}`]),
    ...(at === null ? [] : [timeText(at, true)]),
  ]
  return `${reason}${parts.length === 0 ? '' : ` (${parts.join(', ')})`}`
}
