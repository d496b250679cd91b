/** The last check of an image: its signatures and attestations. */
import { ApiError, addressOf } from '../../../api/client.ts'
import { useRead } from '../../../api/query.ts'
import { verdictWord } from '../../../parts/finding-words.ts'
import { Empty, Shown } from '../../../parts/states.tsx'
import { VerdictBadge } from '../../../parts/supply-chain.tsx'
import { type Column, Table } from '../../../parts/table.tsx'
import { Badge } from '../../../parts/text.tsx'
import { Ago } from '../../../parts/time.tsx'
import { type Attestation, predicateText, signerText } from './words.ts'

const PATH = '/images/{digest}/attestation'
const NOT_FOUND = 404

interface Row {
  readonly what: string
  readonly signature: Attestation['signatures'][number]
  readonly source: string | undefined
}

export function Signatures({ digest, isUnchecked }: { digest: string; isUnchecked: boolean }) {
  const params = { path: { digest } }
  const reading = useRead(PATH, params, { enabled: !isUnchecked })
  const isNotFound = reading.error instanceof ApiError && reading.error.status === NOT_FOUND
  if (isUnchecked || (reading.data === undefined && isNotFound))
    return (
      <Empty title="Never checked">
        No check of this image is kept. That is not the same as unsigned: nobody looked, or it was too long ago.
      </Empty>
    )
  return (
    <Shown reading={reading}>
      {(result) => (
        <>
          <p>
            <VerdictBadge verdict={result.verdict} /> {verdictWord(result.verdict).meaning}
            {result.reason !== null && ` (${result.reason.replaceAll('_', ' ')})`}{' '}
            <span class="faint">
              Checked <Ago at={result.checkedAt} />
              {result.trustRoot !== null && `, against ${result.trustRoot}`}
              {result.signedVia !== null && `, signed through the ${result.signedVia}`}.
            </span>
          </p>
          <Table
            name="Signatures and attestations"
            rows={rowsOf(result)}
            keyOf={({ what, signature }) => `${what} ${signerText(signature)} ${signature.tlogIndex ?? ''}`}
            columns={COLUMNS}
            commands={{ url: addressOf(PATH, params) }}
            empty={<p class="faint">Neither a signature nor an attestation was found.</p>}
          />
        </>
      )}
    </Shown>
  )
}

function rowsOf({ signatures, attestations }: Attestation): readonly Row[] {
  return [
    ...signatures.map((signature) => ({ what: 'signature', signature, source: undefined })),
    ...attestations.map((statement) => {
      const { sourceRepo, sourceCommit } = statement.provenance ?? {}
      const source = [sourceRepo, sourceCommit].filter(Boolean).join(' at ')
      return { what: predicateText(statement.predicateType), signature: statement, source: source || undefined }
    }),
  ]
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'What', cell: ({ what }) => what, text: ({ what }) => what },
  {
    title: 'Verified',
    cell: ({ signature: { verified, error } }) => (
      <>
        <Badge tone={verified ? 'good' : 'warn'}>{verified ? 'yes' : 'no'}</Badge>{' '}
        {error !== undefined && <span class="faint">{error.replaceAll('_', ' ')}</span>}
      </>
    ),
    text: ({ signature: { verified, error } }) => (verified ? 'yes' : `no ${error ?? ''}`),
  },
  {
    title: 'Signer',
    cell: ({ signature }) => <span class="wrap">{signerText(signature)}</span>,
    text: ({ signature }) => signerText(signature),
  },
  {
    title: 'Built from',
    cell: ({ source }) => (source === undefined ? <span class="faint">–</span> : <span class="wrap">{source}</span>),
    text: ({ source }) => source,
  },
  {
    title: 'Signed',
    cell: ({ signature: { integratedTime } }) =>
      integratedTime === undefined ? <span class="faint">not stated</span> : <Ago at={integratedTime} />,
    text: ({ signature: { integratedTime } }) => integratedTime,
  },
]
