/** Vulnerabilities of an image of the workload, with their use and its reason. */
import { addressOf, type Params } from '../../../api/client.ts'
import { itemsOf, usePages } from '../../../api/query.ts'
import { FilterBar } from '../../../parts/filter-bar.tsx'
import { flagsOf, useListFilter } from '../../../parts/list-filter.ts'
import { counted } from '../../../parts/plural.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { Table } from '../../../parts/table.tsx'
import { Count, Digest } from '../../../parts/text.tsx'
import { go, hrefWith, type Query, usePlace } from '../../../place.ts'
import { ImageChoice, useImage } from '../image-choice.tsx'
import { imagesOf } from '../images.ts'
import type { TabProps } from '../index.tsx'
import type { Profile } from '../words.ts'
import { FINDING_COLUMNS } from './columns.tsx'
import { FindingSheet } from './detail.tsx'
import { FINDING_FIELDS } from './fields.ts'
import { Reports } from './reports.tsx'
import { fieldOfWord, findingKey } from './words.ts'

const PATH = '/images/{digest}/vulnerabilities'
const PAGE_ROWS = 100

const NO_FILTER = Object.fromEntries(FINDING_FIELDS.map(({ name }) => [name, null]))

type FindingQuery = NonNullable<Params<typeof PATH>['query']>

export default function Vulnerabilities({ profile }: TabProps) {
  const image = useImage(profile)
  return (
    <>
      <Counts profile={profile} />
      <ImageChoice profile={profile} chosen={image} />
      {image === null ? (
        <Empty title="No such image">
          {profile.dimensions.images.containers.length === 0
            ? 'No image of this workload is in the inventory, so nothing can be said about vulnerabilities.'
            : 'The image of the address is none of those that this workload runs or ran.'}
        </Empty>
      ) : (
        <Findings key={image.digest} digest={image.digest} name={image.imageRef} />
      )}
    </>
  )
}

/** Only these numbers are of this workload alone; the rows are of the image, wherever it runs. */
function Counts({ profile }: { profile: Profile }) {
  const { dimensions, workload } = profile
  const found = dimensions.images.vulnerabilities
  if (found === null)
    return (
      <p class="note">
        How many there are in all of {workload.name} is not known, because no report answers for one of its running
        images.
      </p>
    )
  const { tiers } = found
  const running = imagesOf(profile).filter(({ isRunning }) => isRunning)
  // The rows are those of one image, the counts those of all that run.
  const [only] = running.length === 1 ? running : []
  const count = (value: number, query: Query) => (
    <Count
      value={value}
      {...(only && { to: hrefWith({ ...NO_FILTER, ...query, image: only.digest, finding: null }) })}
    />
  )
  return (
    <p>
      In the running containers of <bdi>{workload.name}</bdi>: {count(tiers.P0, { tier: 'P0' })} of P0,{' '}
      {count(tiers.P1, { tier: 'P1' })} of P1, {count(tiers.P2, { tier: 'P2' })} of P2 and{' '}
      {count(tiers.Background, { tier: 'Background' })} in the background;{' '}
      {count(found.inUse, { in_use: ['executed', 'loaded'] })} in use, {count(found.fixable, { fixable: 'true' })} with
      a fix.{' '}
      <span class="faint">
        A row below is a vulnerability in one package; its use and tier are the worst of all workloads that run the
        image, not of this one alone.
      </span>
    </p>
  )
}

function Findings({ digest, name }: { digest: string; name: string }) {
  const { query } = usePlace()
  const filter = useListFilter(FINDING_FIELDS)
  const params = { path: { digest }, query: { ...filter, limit: PAGE_ROWS } as FindingQuery }
  const reading = usePages(PATH, params)
  const rows = itemsOf(reading)
  const asked = query.get('finding')
  const opened = asked === null ? undefined : rows.find((row) => findingKey(row) === asked)
  return (
    <>
      <FilterBar fields={FINDING_FIELDS} fieldOf={fieldOfWord} />
      <Shown reading={reading}>
        {({ pages }) => {
          const { reports = [], retiredGuesses = [] } = pages[0] ?? {}
          return (
            <>
              <Reports reports={reports} retiredGuesses={retiredGuesses} />
              {asked !== null && opened === undefined && (
                <p class="note">The finding of the address, {asked}, is not among those that were read.</p>
              )}
              <Table
                name={`Vulnerabilities of ${name || digest}`}
                rows={rows}
                keyOf={findingKey}
                columns={FINDING_COLUMNS}
                paged={reading}
                onRow={(row) => go(hrefWith({ finding: findingKey(row) }))}
                isSelected={(row) => row === opened}
                commands={{ ctb: ['vulns', digest, ...flagsOf(filter)], url: addressOf(PATH, params) }}
                empty={
                  reports.length === 0 ? (
                    <Empty title="No report answers for this image">
                      <p>
                        No scanner posted a report for <Digest digest={digest} />. That is unknown, not clean.
                      </p>
                    </Empty>
                  ) : Object.keys(filter).length > 0 ? (
                    <Empty title="No finding matches">The image has reports; remove a filter to see their rows.</Empty>
                  ) : (
                    <Empty title="No finding">
                      {counted(reports.length, 'report')} of this image without a vulnerability.
                    </Empty>
                  )
                }
              />
            </>
          )
        }}
      </Shown>
      {opened !== undefined && <FindingSheet finding={opened} onClose={() => go(hrefWith({ finding: null }))} />}
    </>
  )
}
