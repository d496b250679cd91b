/** The documents of an export (docs/contract.md#workload-profiles). */
import type { Config } from '../../config/index.ts'
import type { Database } from '../../db/index.ts'
import { HttpError } from '../../errors.ts'
import type { BuiltProfile, WorkloadKey } from '../built.ts'

/** In the order of a bundle. */
export const ARTIFACTS = [
  ...(['networkpolicy', 'ciliumnetworkpolicy', 'seccompprofile', 'securitycontext', 'sbom', 'vex'] as const),
  'admission',
] as const
export type Artifact = (typeof ARTIFACTS)[number]
export const MODES = ['audit', 'enforce'] as const
export type Mode = (typeof MODES)[number]
export const FORMATS = ['yaml', 'zip-manifest'] as const

/** The source of the documents of a workload. */
export interface Source extends BuiltProfile {
  readonly db: Database
  readonly config: Config
  readonly key: WorkloadKey
  readonly mode: Mode
}

/** The image of an SBOM; the last four are null where it has none. */
export interface SbomImage {
  readonly containers: readonly string[]
  readonly digest: string
  readonly imageRef: string
  readonly source: string | null
  readonly sbomTrust: string | null
  readonly scannedAt: string | null
  readonly components: number | null
}

interface Named {
  readonly artifact: Artifact
  readonly fileName: string
  readonly image: SbomImage | null
}

export interface Available extends Named {
  /** Both are null for a document that is no Kubernetes object. */
  readonly apiVersion: string | null
  readonly kind: string | null
  readonly contentType: string
  readonly content: string
  /** How to apply it, for people. */
  readonly applyWith: string
  /** A name for people; only of a document that is no Kubernetes object. */
  readonly title: string | null
}

export interface Missing extends Named {
  readonly reason: string
}

export type ExportDocument = Available | Missing

export const isAvailable = (one: ExportDocument): one is Available => 'content' in one

/** An artifact as it is made. */
export interface Made {
  readonly documents: readonly ExportDocument[]
  /** Why it should not enforce; null where it may. */
  readonly refusal: string | null
}

const FILE_NAMES: Partial<Record<Artifact, string>> = {
  securitycontext: 'securitycontext.patch.yaml',
  vex: 'vex.openvex.json',
}
export const fileNameOf = (artifact: Artifact): string => FILE_NAMES[artifact] ?? `${artifact}.yaml`

export const missing = (artifact: Artifact, reason: string): Missing => ({
  ...{ artifact, fileName: fileNameOf(artifact), image: null },
  reason,
})

/** A Kubernetes object; `content` may have several documents of one kind. */
export function objectDocument(
  artifact: Artifact,
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  content: string,
): Available {
  const fileName = fileNameOf(artifact)
  return {
    ...{ artifact, fileName, image: null, apiVersion, kind, contentType: 'application/yaml', content, title: null },
    applyWith: `kubectl apply -f ${fileName}`,
  }
}

/** Returns the result of `work`, or the reason why it cannot be made. Faults of the database are thrown. */
export async function madeOr<T>(work: () => Promise<T>): Promise<T | { readonly reason: string }> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof HttpError) return { reason: error.message.trim() }
    throw error
  }
}

/** A time with `Z` as the documents write it. */
export const withOffset = (time: string): string => time.replace(/Z$/, '+00:00')
