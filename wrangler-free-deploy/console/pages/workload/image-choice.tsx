/** Tabs about images show one image at a time: `image=` in the address, by default the first that runs. */
import { go, hrefWith, usePlace } from '../../place.ts'
import type { Profile } from './words.ts'

export interface ImageOption {
  readonly digest: string
  readonly imageRef: string
  /** The containers that run it, or ran it. */
  readonly containers: readonly string[]
  readonly isRunning: boolean
}

/** Each image once, those that run first. */
export function imagesOf(profile: Profile): readonly ImageOption[] {
  const { containers } = profile.dimensions.images
  const rows = [
    ...containers.flatMap(({ name, running }) => running.map((image) => ({ name, image, isRunning: true }))),
    ...containers.flatMap(({ name, previous }) => previous.map((image) => ({ name, image, isRunning: false }))),
  ]
  const found = new Map<string, ImageOption>()
  for (const { name, image, isRunning } of rows) {
    const { digest, imageRef } = image
    const before = found.get(digest)
    found.set(digest, {
      digest,
      imageRef: before?.imageRef ?? imageRef,
      containers: [...new Set([...(before?.containers ?? []), name])],
      isRunning: before?.isRunning === true || isRunning,
    })
  }
  return [...found.values()]
}

/** An image of the address that the workload does not have is none of its images. */
export function useImage(profile: Profile): ImageOption | null {
  const asked = usePlace().query.get('image')
  const images = imagesOf(profile)
  return (asked === null ? images[0] : images.find(({ digest }) => digest === asked)) ?? null
}

const DIGEST_CHARS = 19

export const optionText = ({ containers, imageRef, digest, isRunning }: ImageOption): string =>
  `${containers.join(', ')}: ${imageRef || digest.slice(0, DIGEST_CHARS)}${isRunning ? '' : ' (earlier)'}`

export function ImageChoice({ profile, chosen }: { profile: Profile; chosen: ImageOption | null }) {
  const images = imagesOf(profile)
  if (images.length === 1 && chosen !== null)
    return (
      <p class="clip-line">
        Image of {chosen.containers.join(', ')}: <code>{chosen.imageRef}</code>
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
