/** The images of a workload, without duplicates. */
import type { Profile } from './words.ts'

export interface ImageOption {
  readonly digest: string
  readonly imageRef: string
  /** The containers that run it, or ran it. */
  readonly containers: readonly string[]
  readonly isRunning: boolean
}

/** Each image once, running ones first. */
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

const DIGEST_CHARS = 19

export const optionText = ({ containers, imageRef, digest, isRunning }: ImageOption): string =>
  `${containers.join(', ')}: ${imageRef || digest.slice(0, DIGEST_CHARS)}${isRunning ? '' : ' (earlier)'}`
