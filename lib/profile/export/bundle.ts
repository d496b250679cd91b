/** Makes the documents of an export (docs/contract.md#workload-profiles). */
import { HttpError } from '../../errors.ts'
import { admissionPolicies } from './admission.ts'
import { ARTIFACTS, type Artifact, type ExportDocument, isAvailable, type Made, type Source } from './document.ts'
import { networkPolicies } from './network.ts'
import { sbomDocuments } from './sbom.ts'
import { seccompProfile } from './seccomp.ts'
import { securityContextPatch } from './security-context.ts'
import { vexDocument } from './vex.ts'

/** A refused artifact with the reason. */
interface Refusal {
  readonly artifact: Artifact
  readonly reason: string
}

/**
 * The documents of the wanted artifacts, in the order of a bundle. They are made one after another, so that the memory
 * for one is free before the next.
 * @throws HttpError 409 for objects that block and are made from what is not complete, unless that is acknowledged
 */
export async function makeDocuments(
  source: Source,
  wanted: readonly Artifact[],
  isAcknowledged: boolean,
): Promise<ExportDocument[]> {
  const mayBlock: Made[] = [
    ...(await networkPolicies(source, wanted)),
    ...(wanted.includes('seccompprofile') ? [await seccompProfile(source)] : []),
    ...(wanted.includes('admission') ? [await admissionPolicies(source)] : []),
  ]
  const refusals = mayBlock.flatMap(({ documents, refusal }) =>
    refusal === null ? [] : [{ artifact: documents[0]!.artifact, reason: refusal }],
  )
  if (refusals.length > 0 && !isAcknowledged) throw refused(refusals)
  const documents = [
    ...mayBlock.flatMap((one) => one.documents),
    ...(wanted.includes('securitycontext') ? [securityContextPatch(source)] : []),
    ...(wanted.includes('sbom') ? await sbomDocuments(source) : []),
    ...(wanted.includes('vex') ? [await vexDocument(source)] : []),
  ]
  return ARTIFACTS.flatMap((artifact) => documents.filter((one) => one.artifact === artifact))
}

const refused = (refusals: readonly Refusal[]) =>
  new HttpError(
    409,
    'what some artifacts are made from is not complete, and enforced they would block what was not seen: export with ' +
      'mode=audit, leave them out, or take them as they are with acknowledgePartial=true',
    {},
    'export_refused',
    { refusals },
  )

/** The artifacts that are included, each once. */
export const includedOf = (documents: readonly ExportDocument[]): Artifact[] => [
  ...new Set(documents.filter(isAvailable).map(({ artifact }) => artifact)),
]
