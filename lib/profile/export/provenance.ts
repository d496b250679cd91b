/** Names, annotations and comments that tell the origin of an exported document (docs/contract.md#workload-profiles). */
import { MAX_DNS_NAME_CHARS } from '../../seccomp/index.ts'
import { comment, type Manifest, quoted, yamlOf } from '../../text/yaml.ts'
import { VERSION } from '../../version.ts'
import { productWord } from '../../wire-names/index.ts'
import type { WorkloadKey } from '../built.ts'
import { type Artifact, type Mode, type Source, withOffset } from './document.ts'

export const productOf = ({ config }: Pick<Source, 'config'>): string => productWord(config.wireNames)

export const generatorOf = (source: Pick<Source, 'config'>): string => `${productOf(source)}-broker/${VERSION}`

export const workloadText = ({ namespace, kind, name }: WorkloadKey): string => `${namespace}/${kind}/${name}`

/** A workload in a comment, where its names cannot be read as anything else. */
export const quotedWorkload = ({ namespace, kind, name }: WorkloadKey): string =>
  [namespace, kind, name].map(quoted).join('/')

/** Characters that a DNS label may have; all others become hyphens. */
export const asLabel = (text: string): string => text.toLowerCase().replace(/[^a-z0-9-]/g, '-')
export const trimmedLabel = (text: string, maxChars: number): string => text.slice(0, maxChars).replace(/^-+|-+$/g, '')

/** The name of the objects of a workload: `<workload>-<product>`. */
export const objectName = (source: Pick<Source, 'config' | 'key'>): string =>
  trimmedLabel(asLabel(`${source.key.name}-${productOf(source)}`), MAX_DNS_NAME_CHARS) || productOf(source)

export function annotationsOf(source: Source): Record<string, string> {
  const { key, mode, profile, config } = source
  const prefix = config.annotationPrefix
  return {
    [`${prefix}/applied-by-${productOf(source)}`]: 'false',
    [`${prefix}/export-mode`]: mode,
    [`${prefix}/generated-at`]: withOffset(profile.generatedAt),
    [`${prefix}/generated-by`]: generatorOf(source),
    [`${prefix}/profile-hash`]: profile.contentHash,
    [`${prefix}/profile-revision`]: profile.version === null ? 'unversioned' : String(profile.version.revision),
    [`${prefix}/source-workload`]: workloadText(key),
  }
}

/** The first two comments of a document. */
export const openingOf = (source: Pick<Source, 'config'>, artifact: Artifact, mode: Mode): string =>
  comment(`${productOf(source)} export: ${artifact} (${mode} mode)`) +
  comment(
    `${productOf(source)} never applies this for you: review it, keep it under version control, apply it yourself.`,
  )

/** An object with the annotations of an export beside its own, sorted by key. */
export function annotated(
  source: Source,
  { metadata, ...manifest }: Manifest,
  changes: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> } = {},
): Manifest {
  const { annotations = {}, ...own } = metadata as { annotations?: Record<string, string> }
  const all = Object.entries({ ...annotations, ...annotationsOf(source) }).sort(([a], [b]) => (a < b ? -1 : 1))
  return { ...manifest, metadata: { ...own, ...changes, annotations: Object.fromEntries(all) } } as Manifest
}

export const yamlText = ({ apiVersion, kind, metadata, spec }: Manifest): string =>
  [...yamlOf({ apiVersion, kind, metadata, spec })].join('')
