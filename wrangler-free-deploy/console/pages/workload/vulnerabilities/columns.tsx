import { USES } from '../../../parts/finding-words.ts'
import { Epss, InUse, TierBadge } from '../../../parts/supply-chain.tsx'
import type { Column } from '../../../parts/table.tsx'
import { Badge, SeverityBadge } from '../../../parts/text.tsx'
import { hrefWith } from '../../../place.ts'
import { decisionShort, type Finding, findingKey, statusText, useReason, useShort } from './words.ts'

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
    cell: ({ tier }) => <TierBadge tier={tier} />,
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
        <InUse state={inUseState} />{' '}
        <span class="faint" title={useReason(inUseDetail)}>
          {useShort(inUseDetail)}
        </span>
      </div>
    ),
    text: ({ inUseState, inUseDetail }) => `${USES[inUseState].word}: ${useReason(inUseDetail)}`,
    width: '18rem',
  },
  { title: 'Fix', cell: fixText, text: fixText, width: '10rem' },
  {
    title: 'EPSS',
    cell: ({ epss }) => <Epss value={epss} />,
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
