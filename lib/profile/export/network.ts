/** The network policies of an export (docs/contract.md#workload-profiles). */
import { headerOf, isLabelValue, type MadePolicy, makeAsSeen } from '../../policies/index.ts'
import { comment, type Manifest } from '../../text/yaml.ts'
import type { Profile } from '../record/profile.ts'
import { type Artifact, type Made, madeOr, missing, objectDocument, type Source } from './document.ts'
import { annotated, objectName, openingOf, yamlText } from './provenance.ts'

/** Days that a workload has to have been observed before its policy may enforce. */
const MIN_DAYS = 1

const FORMATS = { networkpolicy: 'kubernetes', ciliumnetworkpolicy: 'cilium' } as const
type NetworkArtifact = keyof typeof FORMATS

const isNetworkArtifact = (artifact: Artifact): artifact is NetworkArtifact => Object.hasOwn(FORMATS, artifact)

const WITHHELD =
  'withheld in audit mode: a CiliumNetworkPolicy enforces as soon as it is applied; audit with networkpolicy, then ' +
  'export with mode=enforce'
const TRUNCATED =
  'WARNING: the profile shows a part of the peers only, since there are more than it lists. Compare the rules with ' +
  'the flows before you enforce them.'

/** The network policies among the wanted artifacts, made from the same facts. */
export async function networkPolicies(source: Source, wanted: readonly Artifact[]): Promise<Made[]> {
  const { db, config, key, mode } = source
  const all = wanted.filter(isNetworkArtifact)
  const isWithheld = (artifact: NetworkArtifact) => mode === 'audit' && artifact === 'ciliumnetworkpolicy'
  const artifacts = all.filter((one) => !isWithheld(one))
  const formats = artifacts.map((one) => FORMATS[one])
  const settings = {
    minDays: MIN_DAYS,
    trafficRetentionDays: config.trafficRetentionDays,
    flowEdgeRetentionDays: config.flowEdgeRetentionDays,
    peerStaleAliveSecs: config.peerStaleAliveSecs,
    annotationPrefix: config.annotationPrefix,
  }
  const made = formats.length === 0 ? [] : await madeOr(() => makeAsSeen(db, key, formats, settings))
  return all.map((artifact): Made => {
    if (isWithheld(artifact)) return { documents: [missing(artifact, WITHHELD)], refusal: null }
    if ('reason' in made) return { documents: [missing(artifact, notMade(made.reason))], refusal: null }
    const policy = made[artifacts.indexOf(artifact)]!
    return { documents: [documentOf(source, artifact, policy)], refusal: refusalOf(source, policy) }
  })
}

const notMade = (reason: string) => `no policy can be made: ${reason === 'No data found' ? 'no pod is known' : reason}`

function documentOf(source: Source, artifact: NetworkArtifact, made: MadePolicy) {
  const { key, mode, profile } = source
  const audited: Manifest =
    mode === 'audit'
      ? { ...made.manifest, apiVersion: `${source.config.annotationPrefix}/v1alpha1`, kind: 'AuditNetworkPolicy' }
      : made.manifest
  // The API server refuses an object with a label that is none.
  const labels = isLabelValue(key.name) ? { labels: { 'app.kubernetes.io/name': key.name } } : {}
  const manifest = annotated(source, audited, { name: objectName(source), ...labels })
  const content = [
    openingOf(source, artifact, mode),
    ...(mode === 'audit'
      ? [
          comment(
            'An AuditNetworkPolicy has the spec of a NetworkPolicy; the evaluator reports, and nothing is dropped.',
          ),
        ]
      : []),
    ...(profile.dimensions.network.truncated ? [comment(TRUNCATED)] : []),
    headerOf(made),
    yamlText(manifest),
  ].join('')
  return objectDocument(artifact, manifest, content)
}

function refusalOf({ mode, profile }: Source, { gaps }: MadePolicy): string | null {
  if (mode === 'audit') return null
  const faults = [...profileFaults(profile), ...gaps.filter((gap) => gap !== 'nothing was observed')]
  return faults.length === 0 ? null : `a policy that enforces would cut off what was not seen: ${faults.join('; ')}`
}

function profileFaults({ dimensions: { network }, readiness }: Profile): string[] {
  const observed = readiness.find(({ id }) => id === 'trafficObserved24h')
  if (network.peers.length === 0) return ['no flows were observed']
  return [
    ...(network.truncated ? ['there are more flows or peers than the profile reads'] : []),
    ...(observed?.ok === true ? [] : ['traffic was not observed for 24 hours']),
  ]
}
