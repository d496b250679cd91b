import type { Column } from '../../../parts/table.tsx'
import { Badge, SeverityBadge } from '../../../parts/text.tsx'
import { hrefWith } from '../../../place.ts'
import {
  decisionShort,
  type Finding,
  findingKey,
  percentText,
  statusText,
  TIER_TONES,
  USE_TONES,
  useReason,
  useShort,
  useText,
} from './words.ts'

const fixText = ({ fixedVersions, fixable, status }: Finding): string =>
  fixedVersions.length > 0 ? fixedVersions.join(', ') : fixable ? 'a fix exists' : statusText(status)

export const FINDING_COLUMNS: readonly Column<Finding>[] = [
  {
    title: 'Vulnerability',
    cell: (row) => (
      <>
        <a href={hrefWith({ finding: findingKey(row) })}>{row.id}</a>
        {row.kev === true && (
          <>
            {' '}
            <Badge tone="bad" title="Known to be exploited">
              KEV
            </Badge>
          </>
        )}
      </>
    ),
    text: ({ id }) => id,
    width: '13rem',
  },
  {
    title: 'Tier',
    cell: ({ tier }) => <Badge tone={TIER_TONES[tier]}>{tier}</Badge>,
    text: ({ tier }) => tier,
    width: '7rem',
  },
  {
    title: 'Severity',
    cell: ({ severity }) => <SeverityBadge severity={severity} />,
    text: ({ severity }) => severity,
    width: '6.5rem',
  },
  {
    title: 'Package',
    cell: ({ package: { name }, installedVersion }) => (
      <div class="wide-cell">
        <bdi>{name}</bdi> <span class="faint">{installedVersion}</span>
      </div>
    ),
    text: ({ package: { name }, installedVersion }) => `${name} ${installedVersion}`,
    width: '16rem',
  },
  {
    title: 'In use',
    cell: ({ inUseState, inUseDetail }) => (
      <div class="wide-cell">
        <Badge tone={USE_TONES[inUseState]}>{useText(inUseState)}</Badge>{' '}
        <span class="faint" title={useReason(inUseDetail)}>
          {useShort(inUseDetail)}
        </span>
      </div>
    ),
    text: ({ inUseState, inUseDetail }) => `${useText(inUseState)}: ${useReason(inUseDetail)}`,
    width: '18rem',
  },
  { title: 'Fix', cell: fixText, text: fixText, width: '10rem' },
  {
    title: 'EPSS',
    cell: ({ epss }) => (epss === null ? <span class="faint">?</span> : percentText(epss)),
    text: ({ epss }) => epss,
    isNumber: true,
    width: '5rem',
  },
  {
    title: 'Decision',
    cell: (row) => decisionShort(row) || <span class="faint">none</span>,
    text: decisionShort,
    width: '11rem',
  },
]
