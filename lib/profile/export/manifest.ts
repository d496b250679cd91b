/** An export as JSON with the files that a client packs (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { digestText } from '../../images/index.ts'
import { contentHash } from '../record/profile.ts'
import { ARTIFACTS, type ExportDocument, isAvailable, MODES, type Source, withOffset } from './document.ts'

const Image = z.strictObject({
  containers: z.array(z.string()),
  digest: digestText,
  imageRef: z.string(),
  source: z.string().nullable().describe('Null without an SBOM, as the next three.'),
  sbomTrust: z.string().nullable(),
  scannedAt: z.string().nullable(),
  components: z.int().min(0).nullable(),
})

const ManifestDocument = z.strictObject({
  artifact: z.enum(ARTIFACTS),
  fileName: z.string(),
  available: z.boolean(),
  refused: z.null(),
  reason: z.string().nullable().describe('Why it is not available.'),
  apiVersion: z.string().nullable(),
  kind: z.string().nullable().describe('Null for a document that is no Kubernetes object.'),
  mode: z.enum(MODES),
  contentType: z.string().nullable(),
  content: z.string().nullable(),
  applyWith: z.string().nullable().describe('How to apply it, for people.'),
  image: Image.nullable().describe('Only of an SBOM.'),
})

export const ExportManifest = z
  .strictObject({
    workload: z.strictObject({ clusterId: z.string(), namespace: z.string(), kind: z.string(), name: z.string() }),
    mode: z.enum(MODES),
    generatedAt: z.string(),
    profile: z.strictObject({ revision: z.int().min(1).nullable(), contentHash }),
    recorded: z.boolean(),
    documents: z
      .array(ManifestDocument)
      .describe('In the order of artifacts: one of each that was asked for, of `sbom` one for each image.'),
  })
  .meta({ id: 'ProfileExport' })

/** The JSON of a bundle, in parts. */
export function* manifestOf(
  { key, mode, profile }: Source,
  documents: readonly ExportDocument[],
  isRecorded: boolean,
): Generator<string> {
  const head = JSON.stringify({
    workload: { clusterId: profile.workload.clusterId, namespace: key.namespace, kind: key.kind, name: key.name },
    mode,
    generatedAt: withOffset(profile.generatedAt),
    profile: { revision: profile.version?.revision ?? null, contentHash: profile.contentHash },
    recorded: isRecorded,
  } satisfies Omit<z.output<typeof ExportManifest>, 'documents'>)
  yield `${head.slice(0, -1)},"documents":[`
  for (const [n, one] of documents.entries()) yield (n === 0 ? '' : ',') + JSON.stringify(entryOf(one, mode))
  yield ']}'
}

function entryOf(one: ExportDocument, mode: Source['mode']): z.output<typeof ManifestDocument> {
  const has = isAvailable(one) ? one : null
  return {
    artifact: one.artifact,
    fileName: one.fileName,
    available: has !== null,
    refused: null,
    reason: isAvailable(one) ? null : one.reason,
    apiVersion: has?.apiVersion ?? null,
    kind: has?.kind ?? null,
    mode,
    contentType: has?.contentType ?? null,
    content: has?.content ?? null,
    applyWith: has?.applyWith ?? null,
    image: one.image && { ...one.image, containers: [...one.image.containers] },
  }
}
