/** Trust in the images of the workload: signatures, attestations, policies, moved tags, SBOMs. */

import { counted } from '../../../parts/plural.ts'
import { reasonText } from '../../../parts/reason-words.ts'
import { Empty } from '../../../parts/states.tsx'
import { VerdictBadge } from '../../../parts/supply-chain.tsx'
import { Digest } from '../../../parts/text.tsx'
import { Time } from '../../../parts/time.tsx'
import { ImageChoice, useImage } from '../image-choice.tsx'
import type { TabProps } from '../index.tsx'
import type { Profile } from '../words.ts'
import { SbomOf } from './sbom.tsx'
import { Signatures } from './signatures.tsx'
import { TrustVerdicts } from './verdicts.tsx'

export default function Trust({ workload, profile }: TabProps) {
  const image = useImage(profile)
  return (
    <>
      <InShort profile={profile} />
      <section class="section">
        <h2>One image</h2>
        <ImageChoice profile={profile} chosen={image} />
        {image === null ? (
          <Empty title="No such image">
            No image of this workload is in the inventory, or not the one of the address.
          </Empty>
        ) : (
          <>
            <p class="faint">
              <Digest digest={image.digest} /> has all that is known of the image.
            </p>
            <Signatures
              key={`signatures ${image.digest}`}
              digest={image.digest}
              isUnchecked={isUnchecked(profile, image.digest)}
            />
            <SbomOf key={`sbom ${image.digest}`} digest={image.digest} />
          </>
        )}
      </section>
      <MovedTags profile={profile} />
      <TrustVerdicts workload={workload} />
    </>
  )
}

/** The profile has this only for running images. */
function isUnchecked({ dimensions }: Profile, digest: string): boolean {
  const known = dimensions.images.supplyChain?.digests.find((one) => one.digest === digest)
  return known !== undefined && known.verdict === null
}

function InShort({ profile: { dimensions } }: { profile: Profile }) {
  const chain = dimensions.images.supplyChain
  if (chain === null)
    return (
      <section class="section">
        <h2>Signatures</h2>
        <Empty title="Nothing runs">No running image is known, so no signature is judged.</Empty>
      </section>
    )
  const { counts } = chain
  const parts = (
    [
      ['verified', counts.verified],
      ['signed with an unknown key', counts.keySigned],
      ['unsigned', counts.unsigned],
      ['invalid', counts.invalid],
      ['could not be checked', counts.unknown],
      ['never checked', counts.notChecked],
    ] as const
  ).filter(([, count]) => count > 0)
  return (
    <section class="section">
      <h2>Signatures</h2>
      <p>
        <VerdictBadge verdict={chain.verdict} />{' '}
        {chain.status === 'not_configured'
          ? 'Nobody looks for signatures: the broker is configured so.'
          : `The worst of ${counted(
              parts.reduce((sum, [, count]) => sum + count, 0),
              'running image',
            )}: ${parts.map(([word, count]) => `${count} ${word}`).join(', ')}.`}{' '}
        {chain.reason !== null && chain.container !== null && (
          <span class="faint">
            Container {chain.container}: {reasonText(chain.reason)}.
          </span>
        )}
      </p>
      {chain.truncated && <p class="note">There are more images than the broker lists.</p>}
    </section>
  )
}

function MovedTags({ profile: { drift } }: { profile: Profile }) {
  const moved = drift.items.flatMap(({ type, container, detail }) =>
    type === 'tagMoved' && 'imageRef' in detail ? [{ container, ...detail }] : [],
  )
  const gap = drift.notEvaluated.find(({ type }) => type === 'tagMoved')
  return (
    <section class="section">
      <h2>Tags that moved</h2>
      {moved.length > 0 ? (
        <ul class="facts">
          {moved.map(({ container, imageRef, digests, since }) => (
            <li key={`${container} ${imageRef}`}>
              <code class="wrap">{imageRef}</code> of {container ?? 'the pod'} has stood for {digests.length} images
              since <Time at={since} />:{' '}
              {digests.map((digest) => (
                <span key={digest}>
                  <Digest digest={digest} />{' '}
                </span>
              ))}
            </li>
          ))}
        </ul>
      ) : (
        <p>
          {gap === undefined
            ? 'No tag of its containers has stood for several images, as far as the inventory remembers.'
            : `Not known: ${reasonText(gap.reason)}.`}
        </p>
      )}
    </section>
  )
}
