/** The shared part of both routes of an export (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import type { Config } from '../../config/index.ts'
import type { Database, Gate } from '../../db/index.ts'
import { BAD_REQUEST, CodedError } from '../../http/coded-errors.ts'
import type { AnswerHeaders, RouteDoc } from '../../openapi/declare.ts'
import type { BuiltProfile, WorkloadKey } from '../built.ts'
import { isKnownWorkload, workloadNotFound } from '../known.ts'
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
  [MODE_HEADER]: z.enum(MODES),
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
    ...BAD_REQUEST,
    404: { description: 'Nothing is known of the workload: `workload_not_found`.', answer: CodedError },
    409: {
      description:
        'Objects that block would be made from what is not complete: `export_refused`. It names each such artifact ' +
        'with the reason; nothing is answered of the others, and nothing is stored.',
      answer: ExportRefused,
    },
  },
} satisfies Partial<RouteDoc>

/**
 * Bytes that an export takes at most.
 * @throws HttpError 404 if nothing is known of the workload
 */
export async function exportCharge(gate: Gate, key: WorkloadKey, query: ExportQuery, config: Config): Promise<number> {
  if (!(await isKnownWorkload(gate, key))) throw workloadNotFound(key)
  return exportBytes(gate, key, query, config.imageRunningWindowSecs)
}

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
  built: BuiltProfile | null,
  { artifacts, mode, format, acknowledgePartial }: ExportQuery,
  isToBeRecorded: boolean,
): Promise<Exported> {
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
