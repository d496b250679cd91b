/** The answer of GET /images/{digest}/diff/{other} (docs/contract.md#changes). */
import type { Config } from '../config/index.ts'
import type { Gate } from '../db/index.ts'
import { sortedGaps } from './not-known.ts'
import { readImageFiles } from './read/image-files.ts'
import { readComponentsDiff, readFindingsDiff, readSignatures, type SignatureAt } from './read/images.ts'
import type { ImageDiff } from './record.ts'
import { shortList, shownComponents, shownFinding, shownFindings } from './shown.ts'

/** Compares an image with an older one, both as they are known now. */
export async function imageDiff(gate: Gate, from: string, to: string, config: Config): Promise<ImageDiff> {
  const sides = { before: [from], after: [to] }
  const [components, findings, signatures, files] = await Promise.all([
    readComponentsDiff(gate, sides),
    readFindingsDiff(gate, sides),
    readSignatures(gate, [from, to], config.attestationRetentionDays),
    readImageFiles(gate, from, to, {
      leastHours: config.inUseWindowHours,
      retentionDays: config.runtimeInventoryRetentionDays,
    }),
  ])
  const signatureOf = (digest: string) => signatures.find((one) => one.digest === digest)!
  return {
    from,
    to,
    components: components.value && shownComponents(components.value, config.wireNames),
    findings: findings.value && shownFindings(findings.value, config.wireNames, shownFinding),
    signatures: { from: shownSignature(signatureOf(from)), to: shownSignature(signatureOf(to)) },
    files: files.value && { onlyFrom: shortList(files.value.onlyFrom), onlyTo: shortList(files.value.onlyTo) },
    notKnown: sortedGaps([...components.gaps, ...findings.gaps, ...files.gaps]),
  }
}

type Signature = ImageDiff['signatures']['from']

/** A result of an image as answers show it. */
export const shownSignature = (one: SignatureAt): Signature => one as Signature
