/** The last result of checking an image for signatures and attestations. */

import type { ComponentChildren } from 'preact'
import { type Answer, ApiError, addressOf } from '../../api/client.ts'
import { useRead } from '../../api/query.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { verdictWord } from '../../parts/finding-words.ts'
import { Outside } from '../../parts/outside.tsx'
import { Empty, Shown } from '../../parts/states.tsx'
import { VerdictBadge } from '../../parts/supply-chain.tsx'
import { Badge, Digest } from '../../parts/text.tsx'
import { Ago, Time } from '../../parts/time.tsx'
import type { TabProps } from './image.tsx'

type Result = Answer<'/images/{digest}/attestation'>
type Signature = Result['signatures'][number]
type Attestation = Result['attestations'][number]

export function ImageSignatures({ digest }: TabProps) {
  const asked = { path: { digest } }
  const reading = useRead('/images/{digest}/attestation', asked)
  if (reading.error instanceof ApiError && reading.error.status === 404)
    return (
      <Empty title="Not checked">
        No result of a check of this image is kept. That is not unsigned: nobody has looked, or it was too long ago.
      </Empty>
    )
  return (
    <Shown reading={reading}>
      {(result) => (
        <>
          <p>
            <VerdictBadge verdict={result.verdict} /> {verdictWord(result.verdict).meaning}
          </p>
          <dl class="pairs">
            <Pair name="Why not better" value={result.reason} />
            <dt>Checked</dt>
            <dd>
              <Ago at={result.checkedAt} />
            </dd>
            <Pair name="Trust root" value={result.trustRoot} />
            {result.signedVia === 'index' && (
              <>
                <dt>Signed is the index</dt>
                <dd>{result.signedDigest && <Digest digest={result.signedDigest} isLink={false} />}</dd>
              </>
            )}
          </dl>
          <h3>Signatures</h3>
          {result.signatures.length === 0 && <p class="faint">The check found none.</p>}
          <div class="cards">
            {result.signatures.map((one, index) => (
              <Entry key={index} title={one.format} entry={one} />
            ))}
          </div>
          <h3>Attestations</h3>
          {result.attestations.length === 0 && <p class="faint">The check found none.</p>}
          <div class="cards">
            {result.attestations.map((one, index) => (
              <Entry key={index} title={one.predicateType ?? one.format} entry={one}>
                <Provenance attestation={one} />
              </Entry>
            ))}
          </div>
          <div class="row">
            <CopyAs
              ctb={['get', `/images/${digest}/attestation`]}
              url={addressOf('/images/{digest}/attestation', asked)}
            />
          </div>
        </>
      )}
    </Shown>
  )
}

function Pair({ name, value }: { name: string; value: ComponentChildren }) {
  if (value === null || value === undefined || value === '') return null
  return (
    <>
      <dt>{name}</dt>
      <dd class="wrap">{value}</dd>
    </>
  )
}

interface EntryProps {
  readonly title: string
  readonly entry: Signature | Attestation
  readonly children?: ComponentChildren
}

function Entry({ title, entry, children }: EntryProps) {
  return (
    <article class="card">
      <h4 class="wrap">{title}</h4>
      <p>
        {entry.verified ? <Badge tone="good">verified</Badge> : <Badge tone="warn">not verified</Badge>}{' '}
        <span class="faint">found by {entry.source}</span>
      </p>
      <dl class="pairs">
        <Pair name="Issuer" value={entry.issuer} />
        <Pair name="Signer" value={entry.san} />
        <Pair name="Key" value={entry.keyName} />
        <Pair name="Fingerprint" value={entry.keyFingerprint && <code>{entry.keyFingerprint}</code>} />
        <Pair name="Key hint" value={entry.keyHint} />
        <Pair name="Bound to" value={entry.subject && <code>{entry.subject}</code>} />
        <Pair name="Logged" value={entry.integratedTime && <Time at={entry.integratedTime} />} />
        <Pair name="Log index" value={entry.tlogIndex === undefined ? null : String(entry.tlogIndex)} />
        <Pair name="Error" value={entry.error} />
        <Pair name="Detail" value={entry.detail} />
      </dl>
      {children}
    </article>
  )
}

function Provenance({ attestation: { provenance } }: { attestation: Attestation }) {
  if (!provenance) return null
  const { builderId, buildType, sourceRepo, sourceCommit, sourceRef } = provenance
  return (
    <dl class="pairs">
      <Pair name="Built by" value={builderId && <Outside url={builderId} />} />
      <Pair name="Build type" value={buildType} />
      <Pair name="Source" value={sourceRepo && <Outside url={sourceRepo} />} />
      <Pair name="Commit" value={sourceCommit && <code>{sourceCommit}</code>} />
      <Pair name="Ref" value={sourceRef} />
    </dl>
  )
}
