/** The dimension `images` of a profile (docs/contract.md#workload-profiles). */

import { byContainer } from '../../images/by-container.ts'
import { type Judged, statusOf } from '../finding.ts'
import type { InventoryRow } from '../inventory.ts'
import type { Finding, Reason, Status } from '../record/common.ts'
import type { Images } from '../record/images.ts'
import type { Snapshot } from '../snapshot.ts'
import { earliest } from '../times.ts'
import { containerFindings, imageContainers, isStale, runningPairs } from './containers.ts'
import type { ImageFacts } from './facts.ts'
import { signatureFindings, signatureText, supplyChainOf } from './signatures.ts'
import { vulnerabilitiesOf, vulnerabilityFindings, vulnerabilityText } from './vulnerabilities.ts'

interface ImageOptions {
  /** Seconds for which a reported container counts as running. */
  readonly runningWindowSecs: number
  /** `SIGNATURE_DISCOVERY_ENABLED`. */
  readonly isDiscoveryConfigured: boolean
  /** Whether the inventory has more rows than `rows`. */
  readonly isTruncated: boolean
}

/**
 * Judges the images that a workload runs. `supplyChain.imageTrust` is null: only the route asks for it. The status is
 * ok only where everything is known: each running image has a report without a finding, and a verified signature.
 */
export function judgeImages(rows: readonly InventoryRow[], facts: ImageFacts, options: ImageOptions): Judged<Images> {
  const { runningWindowSecs, isDiscoveryConfigured, isTruncated } = options
  const running = new Set(runningPairs(rows).map(({ digest }) => digest)).size
  const supplyChain = supplyChainOf(rows, facts.signatures, isDiscoveryConfigured)
  const vulnerabilities = vulnerabilitiesOf(running, facts)
  const findings = [
    ...containerFindings(rows),
    ...signatureFindings(rows, facts.signatures, isDiscoveryConfigured),
    ...vulnerabilityFindings(facts.vulnerabilities),
  ]
  const parts = { vulnerabilities, supplyChain, truncated: isTruncated }
  return {
    dimension: {
      status: imagesStatus(findings, parts),
      coverage: coverageOf(rows, parts, runningWindowSecs),
      reasons: reasonsOf(rows, running, facts, parts),
      runningWindowSeconds: runningWindowSecs,
      containers: imageContainers(rows),
      truncated: isTruncated,
      vulnerabilities,
      supplyChain,
    },
    findings,
  }
}

type Parts = Pick<Images, 'vulnerabilities' | 'supplyChain' | 'truncated'>

/** An invalid signature is a risk whatever else is not known. */
function imagesStatus(findings: readonly Finding[], { vulnerabilities, supplyChain, truncated }: Parts): Status {
  if (supplyChain?.verdict === 'invalid') return 'risk'
  if (vulnerabilities === null || supplyChain === null) return 'unknown'
  const status = statusOf(findings)
  const isVouchedFor = supplyChain.status === 'not_configured' || supplyChain.verdict === 'verified'
  return status === 'ok' && (truncated || !isVouchedFor) ? 'unknown' : status
}

function coverageOf(rows: readonly InventoryRow[], { vulnerabilities, truncated }: Parts, windowSecs: number) {
  const times = rows.map(({ firstSeen }) => firstSeen)
  const observedSince = earliest(times)
  const isWhole = vulnerabilities !== null && !truncated
  const level: Images['coverage']['level'] = rows.length === 0 ? 'none' : isWhole ? 'full' : 'partial'
  const of = `images that ran in the last ${windowSecs} seconds, or in pods that live`
  const note = rows.length === 0 ? 'no image was reported' : isWhole ? `${of}, all scanned` : `${of}, not all scanned`
  return { level, fraction: null, observedSince, note }
}

function reasonsOf(rows: readonly InventoryRow[], running: number, facts: ImageFacts, parts: Parts): Reason[] {
  if (rows.length === 0) return [{ code: 'no_inventory', message: 'No agent has reported the images of this workload' }]
  const { vulnerabilities, supplyChain, truncated } = parts
  const reasons: Reason[] = []
  if (vulnerabilities === null) {
    const missing = running - facts.scanned.length
    const message =
      running === 0
        ? 'No image of this workload runs now'
        : `${missing} of ${running} running digests have no report of vulnerabilities`
    reasons.push({ code: 'vulnerabilities_not_configured', message })
  }
  if (supplyChain?.status === 'configured')
    reasons.push({ code: 'signatures', message: `Signatures ${signatureText(supplyChain)}` })
  if (supplyChain?.status === 'not_configured')
    reasons.push({ code: 'signatures_not_configured', message: 'Nothing is configured to look for signatures' })
  if (vulnerabilities !== null) reasons.push({ code: 'vulnerabilities', message: vulnerabilityText(vulnerabilities) })
  if (truncated) reasons.push({ code: 'truncated', message: 'The inventory has more images than were read' })
  return reasons
}

/** The part of the snapshot: the running digests of each container that is not stale, sorted; none where none runs. */
export const imagesSnapshot = (rows: readonly InventoryRow[]): Snapshot['images'] => ({
  containers: Object.fromEntries(
    [...byContainer(rows)]
      .filter(([, own]) => !isStale(own))
      .map(([name, own]) => [name, [...new Set(runningPairs(own).map(({ digest }) => digest))].sort()]),
  ),
})
