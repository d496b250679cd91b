/** The seccomp profile of an export: that of GET /seccomp/profiles/../export with more annotations. */
import { makeProfile } from '../../seccomp/index.ts'
import { type Made, madeOr, missing, objectDocument, type Source } from './document.ts'
import { annotated, openingOf, yamlText } from './provenance.ts'

const ACTIONS = { audit: 'SCMP_ACT_LOG', enforce: 'SCMP_ACT_ERRNO' } as const

export async function seccompProfile(source: Source): Promise<Made> {
  const { db, config, key, mode } = source
  const made = await madeOr(() => makeProfile(db, key, ACTIONS[mode], config.annotationPrefix))
  if ('reason' in made) return { documents: [missing('seccompprofile', made.reason)], refusal: null }
  const manifest = annotated(source, made.manifest)
  const content = openingOf(source, 'seccompprofile', mode) + made.comments + yamlText(manifest)
  return {
    documents: [objectDocument('seccompprofile', manifest, content)],
    refusal: made.refusal === null ? null : made.refusal.trim(),
  }
}
