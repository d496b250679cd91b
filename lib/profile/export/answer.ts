/** The shared part of both routes of an export (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import type { Config } from '../../config/index.ts'
import type { Database } from '../../db/index.ts'
import { charge, kib } from '../../http/charge.ts'
import type { AnswerHeaders, RouteDoc } from '../../openapi/declare.ts'
import { buildProfile } from '../build.ts'
import type { WorkloadKey } from '../built.ts'
import { isKnownWorkload, WORKLOAD_REFUSALS, workloadNotFound } from '../known.ts'
import { includedOf, makeDocuments } from './bundle.ts'
import { exportBytes } from './charge.ts'
import { ARTIFACTS, MODES, type Source } from './document.ts'
import { ExportManifest, manifestOf } from './manifest.ts'
import type { ExportQuery } from './query.ts'
import { recordExport } from './record.ts'
import { yamlStream } from './stream.ts'

const YAML = 'application/yaml'
const MODE_HEADER = 'X-Kguardian-Export-Mode'
const RECORDED_HEADER = 'X-Kguardian-Export-Recorded'

const documentedHeaders: AnswerHeaders = {
  [MODE_HEADER]: z.enum(MODES).describe('The mode of the artifacts.'),
  [RECORDED_HEADER]: z.enum(['true', 'false']).describe('Whether the export was stored.'),
}

const ExportRefused = z
  .strictObject({
    error: z.literal('export_refused'),
    message: z.string(),
    refusals: z.array(z.strictObject({ artifact: z.enum(ARTIFACTS), reason: z.string() })).min(1),
  })
  .meta({ id: 'ProfileExportRefused' })

/** The answers of the routes, for the OpenAPI document. */
export const exportAnswers = {
  answer: [{ contentType: YAML, schema: z.string() }, ExportManifest],
  headers: documentedHeaders,
  also: {
    ...WORKLOAD_REFUSALS,
    409: {
      description:
        'Objects that block would be made from what is not complete: `export_refused`. It names each such artifact ' +
        'with the reason; nothing is answered of the others, and nothing is stored.',
      answer: ExportRefused,
    },
  },
} satisfies Partial<RouteDoc>

/** Charges the memory that an export takes at most; an unknown workload is refused before. */
export const chargeExport = charge<{ out: { param: WorkloadKey; query: ExportQuery } }>(async (c) => {
  const { db, config } = c.get('deps')
  const key = c.req.valid('param')
  if (!(await isKnownWorkload(db.read, key))) throw workloadNotFound(key)
  return kib(await exportBytes(db.read, key, c.req.valid('query'), config.imageRunningWindowSecs))
})

interface Exported {
  readonly body: Buffer
  readonly headers: Record<string, string>
}

/**
 * The export of a profile, and stores it where it `isToBeRecorded` and has any document.
 * @throws HttpError 404 without a profile; 409 for objects that block, made from what is not complete
 */
export async function exportProfile(
  { db, config }: { readonly db: Database; readonly config: Config },
  key: WorkloadKey,
  { artifacts, mode, format, acknowledgePartial }: ExportQuery,
  isToBeRecorded: boolean,
): Promise<Exported> {
  const built = await buildProfile({ db, config }, key, db.read)
  if (built === null) throw workloadNotFound(key)
  const source: Source = { ...built, db, config, key, mode }
  const documents = await makeDocuments(source, artifacts, acknowledgePartial)
  const included = includedOf(documents)
  const isRecorded = isToBeRecorded && included.length > 0
  if (isRecorded) await recordExport(db, source, included)
  const headers = {
    [MODE_HEADER]: mode,
    [RECORDED_HEADER]: String(isRecorded),
    'access-control-expose-headers': `${MODE_HEADER}, ${RECORDED_HEADER}`,
  }
  if (format === 'yaml')
    return {
      body: Buffer.from(yamlStream(source, documents, isRecorded)),
      headers: { ...headers, 'content-type': YAML },
    }
  const parts = [...manifestOf(source, documents, isRecorded)].map((part) => Buffer.from(part))
  return { body: Buffer.concat(parts), headers }
}
