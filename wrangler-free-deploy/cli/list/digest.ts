/** Digests of images as arguments. */
import { oneLine } from '../../../lib/text/one-line.ts'
import { ask } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { answerOf } from '../output/show.ts'
import { type ImageNames, imageText } from '../output/words.ts'

/** Fewer digits would soon name several images. */
const MIN_DIGITS = 12
/** The most hits of a type that a search answers with. */
const MAX_HITS = 50

export const digestArgument = {
  placeholder: 'DIGEST',
  brief: `The digest of an image, or its first ${MIN_DIGITS} or more digits.`,
} as const

interface ImageHit extends ImageNames {
  readonly type: 'image'
  readonly indexDigest: string | null
}

/**
 * The whole digest. One that is short is looked for among the images that the broker knows, also before a request that
 * is only printed, since it needs the whole one.
 * @throws Failure for what is no digest; as not found where no image has it, or several have
 */
export async function wholeDigest(context: CliContext, flags: ConnectionFlags, given: string): Promise<string> {
  const text = given.toLowerCase()
  if (/^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$/.test(text)) return text
  if (!new RegExp(`^(sha(256|512):)?[0-9a-f]{${MIN_DIGITS},128}$`).test(text))
    throw new Failure(
      `${oneLine(given)}: expected a digest, sha256:..., or its first ${MIN_DIGITS} or more digits`,
      EXIT.usage,
    )
  const found = await imagesOf(context, flags, text)
  const [only, ...others] = [...found.keys()]
  if (only === undefined)
    throw new Failure(`${given}: no image that the broker knows has a digest that begins so`, EXIT.notFound)
  if (others.length === 0) return only
  const candidates = [...found].map(([digest, name]) => `  ${digest}  ${oneLine(name)}`)
  throw new Failure([`${given}: several images have a digest that begins so:`, ...candidates].join('\n'), EXIT.notFound)
}

/** The digests of images and indexes that begin so, with the names of the images. */
async function imagesOf(context: CliContext, flags: ConnectionFlags, text: string): Promise<Map<string, string>> {
  const bytes = await ask(context, flags, {
    ...({ method: 'GET', path: ['search'], expects: 'application/json' } as const),
    query: { q: text, limit: String(MAX_HITS) },
  })
  const { hits } = answerOf<{ hits: readonly (ImageHit | { readonly type: 'other' })[] }>(bytes)
  const begins = (digest: string) => digest.replace(/^sha\d+:/, '').startsWith(text.replace(/^sha\d+:/, ''))
  const found = new Map<string, string>()
  for (const hit of hits) {
    if (hit.type !== 'image') continue
    const digest = begins(hit.digest) ? hit.digest : (hit.indexDigest ?? hit.digest)
    found.set(digest, imageText({ ...hit, digest }))
  }
  return found
}
