/** The columns of the list of flows. */
import type { Column } from '../../parts/table.tsx'
import { Badge } from '../../parts/text.tsx'
import { localText, utcText } from '../../parts/time.tsx'
import { hrefWith } from '../../place.ts'
import { type Flow, keyOf, seenBy } from './flow.ts'
import { SideLink, sidesOf, sideText } from './side.tsx'
import { NOT_KNOWN, verdictText } from './words.ts'

export function Verdict({ decision }: Pick<Flow, 'decision'>) {
  const title = verdictText({ decision })
  if (decision === 'DROP')
    return (
      <Badge tone="bad" title={title}>
        dropped
      </Badge>
    )
  return <bdi title={title}>{decision === 'ALLOW' ? 'allowed' : (decision ?? NOT_KNOWN)}</bdi>
}

/** The link from a row to its detail. */
export const linkId = (flow: Pick<Flow, 'uuid' | 'time_stamp'>) => `flow-${keyOf(flow)}`

function FirstSeen({ uuid, time_stamp }: Flow) {
  return (
    <a
      id={linkId({ uuid, time_stamp })}
      href={hrefWith({ flow: uuid, at: time_stamp })}
      title={`${utcText(time_stamp)}: all fields`}
    >
      <time dateTime={`${time_stamp}Z`}>{localText(time_stamp)}</time>
    </a>
  )
}

function Port(flow: Flow) {
  return (
    <span class="flow-port">
      <bdi>{sidesOf(flow).to.port ?? <span class="faint">?</span>}</bdi> <span class="kind">{flow.ip_protocol}</span>
    </span>
  )
}

export const COLUMNS: readonly Column<Flow>[] = [
  {
    title: 'First seen',
    width: '10.5rem',
    cell: (flow) => <FirstSeen {...flow} />,
    text: ({ time_stamp }) => time_stamp,
  },
  { title: 'Verdict', width: '6rem', cell: (flow) => <Verdict {...flow} />, text: ({ decision }) => decision },
  {
    title: 'From',
    cell: (flow) => <SideLink side={sidesOf(flow).from} />,
    text: (flow) => sideText(sidesOf(flow).from),
  },
  { title: 'To', cell: (flow) => <SideLink side={sidesOf(flow).to} />, text: (flow) => sideText(sidesOf(flow).to) },
  {
    title: 'Port',
    width: '7rem',
    cell: (flow) => <Port {...flow} />,
    text: (flow) => `${sidesOf(flow).to.port ?? ''}/${flow.ip_protocol ?? ''}`,
  },
  {
    title: 'Seen by',
    width: '6rem',
    isMinor: true,
    cell: (flow) => seenBy(flow) ?? <span class="faint">{NOT_KNOWN}</span>,
    text: seenBy,
  },
]

/** One cell with three lines, for narrow screens. */
export const NARROW_COLUMNS: readonly Column<Flow>[] = [
  {
    title: 'Flow',
    cell: (flow) => (
      <div class="flow-narrow">
        <span>
          <FirstSeen {...flow} /> <Verdict {...flow} />
        </span>
        <span>
          <SideLink side={sidesOf(flow).from} />
        </span>
        <span>
          → <Port {...flow} /> <SideLink side={sidesOf(flow).to} />
        </span>
      </div>
    ),
  },
]
