/** Versions of the profile, and the differences between two of them. */
import { type Answer, addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Empty, Shown } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge } from '../../../parts/text.tsx'
import { Ago, Time } from '../../../parts/time.tsx'
import { hrefWith, usePlace } from '../../../place.ts'
import type { Named } from '../name.ts'
import { DIMENSIONS, STATUS_TONES } from '../words.ts'
import { ChangeTable } from './part.tsx'
import { profileParts } from './rows.ts'

const LIST = '/workloads/{namespace}/{kind}/{name}/profile/versions'
const DIFF = '/workloads/{namespace}/{kind}/{name}/profile/diff'
const SHOWN = 50

type Version = Answer<typeof LIST>['items'][number]

export function Versions({ workload: { namespace, kind, name } }: { workload: Named }) {
  const path = { namespace, kind, name }
  const params = { path, query: { limit: SHOWN } }
  const reading = useRead(LIST, params)
  const { query } = usePlace()
  const to = revisionOf(query, 'to_revision')
  return (
    <section class="section">
      <h2>Versions of the profile</h2>
      <p class="faint">
        A job stores one when the state of network, syscalls, pod security or images is another than before. Choose one
        to see what made it.
      </p>
      <Shown reading={reading}>
        {({ items, nextBefore }) => (
          <>
            {nextBefore !== null && <p class="faint">The newest {SHOWN}; older ones are kept, too.</p>}
            <Table
              name="Versions of the profile"
              rows={items}
              keyOf={({ revision }) => String(revision)}
              columns={COLUMNS}
              isSelected={({ revision }) => revision === to}
              commands={{ url: addressOf(LIST, params) }}
              empty={
                <Empty title="No version is stored">The job has not computed a profile of this workload yet.</Empty>
              }
            />
          </>
        )}
      </Shown>
      {to !== null && <VersionDiff path={path} from={revisionOf(query, 'from_revision')} to={to} />}
    </section>
  )
}

function revisionOf(query: URLSearchParams, name: string): number | null {
  const text = query.get(name) ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : null
}

function VersionDiff({ path, from, to }: { path: Named; from: number | null; to: number }) {
  const params = { path, query: { to, ...(from !== null && { from }) } }
  const reading = useRead(DIFF, params, { pollMs: 0 })
  return (
    <div class="section" id="revision">
      <Shown reading={reading}>
        {(diff) => (
          <>
            <div class="table-tools">
              <span>
                <strong>Revision {diff.to.revision}</strong> of <Time at={diff.to.createdAt} />, against{' '}
                {diff.from === null ? (
                  diff.fromTrimmed ? (
                    'nothing: the earlier ones are no longer kept'
                  ) : (
                    'nothing: it is the first'
                  )
                ) : (
                  <>
                    revision {diff.from.revision} of <Time at={diff.from.createdAt} />
                    {diff.fromTrimmed && ', because those between are no longer kept'}
                  </>
                )}
              </span>
              <span class="grow" />
              <CopyAs url={addressOf(DIFF, params)} />
            </div>
            {profileParts(diff).map(({ title, isChanged, rows }) => (
              <div key={title} class="change-part">
                <h3>
                  {title}{' '}
                  <Badge tone={isChanged ? 'info' : 'plain'}>
                    {diff.from === null ? 'no earlier version' : isChanged ? 'changed' : 'unchanged'}
                  </Badge>
                </h3>
                {isChanged && rows.length === 0 && (
                  <p class="faint">Another state with nothing to list, such as from unknown to none.</p>
                )}
                {rows.length > 0 && <ChangeTable title={title} rows={rows} />}
              </div>
            ))}
          </>
        )}
      </Shown>
    </div>
  )
}

const changedText = ({ changedDimensions }: Version): string =>
  changedDimensions === null
    ? 'not known, the one before is gone'
    : changedDimensions.map((one) => DIMENSIONS[one].toLowerCase()).join(', ')

const COLUMNS: readonly Column<Version>[] = [
  {
    title: 'Revision',
    cell: ({ revision }) => <a href={hrefWith({ to_revision: String(revision), from_revision: null })}>{revision}</a>,
    text: ({ revision }) => revision,
  },
  { title: 'Stored', cell: ({ createdAt }) => <Ago at={createdAt} />, text: ({ createdAt }) => createdAt },
  { title: 'Changed', cell: changedText, text: changedText },
  {
    title: 'Posture then',
    cell: ({ posture: { status } }) => <Badge tone={STATUS_TONES[status]}>{status}</Badge>,
    text: ({ posture: { status } }) => status,
  },
  {
    title: 'Compare',
    cell: (version) => <Compare version={version} />,
  },
]

/** Compares with another version once one is chosen. */
function Compare({ version: { revision } }: { version: Version }) {
  const to = revisionOf(usePlace().query, 'to_revision')
  if (to === null || to === revision) return <span class="faint">–</span>
  const [older, newer] = revision < to ? [revision, to] : [to, revision]
  return (
    <a href={hrefWith({ from_revision: String(older), to_revision: String(newer) })}>
      {older} with {newer}
    </a>
  )
}
