/** Chooses another image of the same repository for a comparison. */
import { useState } from 'preact/hooks'
import { useRead } from '../../api/query.ts'
import { localText } from '../../parts/time.tsx'
import { go, href } from '../../place.ts'
import type { ImageRecord } from './image.tsx'

const MAX_OTHERS = 100

export function CompareWith({ image }: { image: ImageRecord }) {
  const [isOpen, setOpen] = useState(false)
  if (image.repository === null) return null
  if (!isOpen)
    return (
      <button type="button" onClick={() => setOpen(true)}>
        Compare…
      </button>
    )
  return <Others image={image} repository={image.repository} />
}

function Others({ image, repository }: { image: ImageRecord; repository: string }) {
  const { data, error } = useRead('/images', { query: { repository, limit: MAX_OTHERS } })
  if (data === undefined) return <span class="faint">{error?.message ?? 'Reading the other images…'}</span>
  const others = data.items
    .filter(({ digest }) => digest !== image.digest)
    .sort((one, other) => (one.firstSeen < other.firstSeen ? 1 : -1))
  if (others.length === 0) return <span class="faint">No other image of {repository} is known.</span>
  const compare = (digest: string) => {
    const other = others.find((one) => one.digest === digest)
    if (other === undefined) return
    // The image that was seen first is the older one.
    const [from, to] = other.firstSeen <= image.firstSeen ? [other, image] : [image, other]
    go(href(['image', from.digest, 'diff', to.digest]))
  }
  return (
    <label>
      Compare with{' '}
      <select value="" onChange={({ currentTarget }) => compare(currentTarget.value)}>
        <option value="">
          {data.nextAfter === null ? 'choose an image' : `choose one of the ${MAX_OTHERS} that are first by digest`}
        </option>
        {others.map(({ digest, tags, firstSeen }) => (
          <option key={digest} value={digest}>
            {`${tags[0] ?? digest.slice(0, 19)}, since ${localText(firstSeen)}`}
          </option>
        ))}
      </select>
    </label>
  )
}
