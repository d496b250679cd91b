/** For tabs that show one image at a time: `image=` in the address, by default the first running image. */
import { go, hrefWith, usePlace } from '../../place.ts'
import { type ImageOption, imagesOf, optionText } from './images.ts'
import type { Profile } from './words.ts'

/** An image of the address that the workload does not have is ignored. */
export function useImage(profile: Profile): ImageOption | null {
  const asked = usePlace().query.get('image')
  const images = imagesOf(profile)
  return (asked === null ? images[0] : images.find(({ digest }) => digest === asked)) ?? null
}

export function ImageChoice({ profile, chosen }: { profile: Profile; chosen: ImageOption | null }) {
  const images = imagesOf(profile)
  if (images.length === 1 && chosen !== null)
    return (
      <p class="clip-line">
        Image of <bdi>{chosen.containers.join(', ')}</bdi>: <code>{chosen.imageRef}</code>
      </p>
    )
  return (
    <label class="field-line">
      Image{' '}
      <select
        value={chosen?.digest ?? ''}
        onChange={({ currentTarget }) => go(hrefWith({ image: currentTarget.value, finding: null, after: null }))}
      >
        {chosen === null && <option value="">not an image of this workload</option>}
        {images.map((option) => (
          <option key={option.digest} value={option.digest}>
            {optionText(option)}
          </option>
        ))}
      </select>
    </label>
  )
}
