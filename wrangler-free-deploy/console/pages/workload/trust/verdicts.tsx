/** Verdicts of the cluster's image trust policies on the containers. */
import { type Answer, addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge, Digest, type Tone } from '../../../parts/text.tsx'
import type { Named } from '../name.ts'

const PATH = '/image-trust'
const SHOWN = 100

type Result = Answer<typeof PATH>['results'][number]

export function TrustVerdicts({ workload: { namespace, kind, name } }: { workload: Named }) {
  const params = { query: { namespace, workload_kind: kind, workload_name: name, limit: SHOWN } }
  const reading = useRead(PATH, params)
  return (
    <section class="section">
      <h2>Image trust policies</h2>
      <Shown reading={reading}>
        {({ available, reason, results, truncated, total, policies }) =>
          available ? (
            <>
              {truncated && (
                <p class="note">
                  {results.length} of {total} results are listed.
                </p>
              )}
              <Table
                name="Verdicts of image trust policies"
                rows={results}
                keyOf={({ policy, container, digest }) => `${policy} ${container} ${digest}`}
                columns={COLUMNS}
                commands={{
                  ctb: [
                    'trust',
                    '-n',
                    namespace,
                    '--workload-kind',
                    kind,
                    '--workload-name',
                    name,
                    '--limit',
                    `${SHOWN}`,
                  ],
                  url: addressOf(PATH, params),
                }}
                empty={
                  <Empty title="No result for this workload">
                    {policies.length === 0
                      ? 'The evaluator has no image trust policy.'
                      : 'No image trust policy is about its containers.'}
                  </Empty>
                }
              />
            </>
          ) : (
            <Empty title="Not known">
              No judgement of policies is available: {reason ?? 'no reason is given'}. That is not “nothing would be
              denied”.
            </Empty>
          )
        }
      </Shown>
    </section>
  )
}

const TONES: Readonly<Record<string, Tone>> = { Trusted: 'good', WouldDeny: 'bad', Unknown: 'plain' }
const WORDS: Readonly<Record<string, string>> = { Trusted: 'trusted', WouldDeny: 'would be denied', Unknown: 'unknown' }

const COLUMNS: readonly Column<Result>[] = [
  {
    title: 'Verdict',
    cell: ({ verdict }) => <Badge tone={TONES[verdict] ?? 'plain'}>{WORDS[verdict] ?? verdict}</Badge>,
    text: ({ verdict }) => verdict,
  },
  { title: 'Policy', cell: ({ policy }) => policy, text: ({ policy }) => policy },
  { title: 'Container', cell: ({ container }) => container, text: ({ container }) => container },
  {
    title: 'Image',
    cell: ({ image, digest }) => (
      <>
        <code class="wrap">{image}</code> {digest !== '' && <Digest digest={digest} />}
      </>
    ),
    text: ({ image }) => image,
  },
  {
    title: 'Why',
    cell: ({ reason }) => <span class="wrap">{reason ?? ''}</span>,
    text: ({ reason }) => reason,
  },
]
