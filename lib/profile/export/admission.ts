/** The image policies of an export, from the verified signers of the images of a workload. */
import { createHash } from 'node:crypto'
import {
  type Group,
  headerOf,
  manifestsOf,
  type Options,
  type Plan,
  partsOf,
  planOf,
  readCoverage,
  tooLarge,
} from '../../admission/index.ts'
import { HttpError } from '../../errors.ts'
import { Slice } from '../../event-loop/slices.ts'
import { oneLine } from '../../text/one-line.ts'
import { comment, quoted } from '../../text/yaml.ts'
import { toWirePolicyFormat } from '../../wire-names/index.ts'
import { MADE_BYTES } from './charge.ts'
import { type Made, madeOr, missing, objectDocument, type Source } from './document.ts'
import {
  annotated,
  asLabel,
  objectName,
  openingOf,
  quotedWorkload,
  trimmedLabel,
  workloadText,
  yamlText,
} from './provenance.ts'

const HASH_CHARS = 8
/** Longest name that the engines accept, a DNS label (RFC 1123). */
const MAX_NAME_CHARS = 63
/** Longest part of the name from a repository. */
const MAX_TAIL_CHARS = 20
/** Longest lists that the definition of ImageTrustPolicy accepts. */
const MAX_NATIVE = { images: 64, authorities: 32 }
/** Copies of the signers in memory: as read, and in the plan. */
const COPIES = 3

export async function admissionPolicies(source: Source): Promise<Made> {
  const plan = await madeOr(() => planFor(source))
  if ('reason' in plan) return notMade(`no policy can be made: ${plan.reason}`)
  const uncovered = plan.uncovered.map(({ name, reason }) => oneLine(`${quoted(name)}: ${reason}`)).join('; ')
  if (plan.groups.length === 0)
    return notMade(
      uncovered === ''
        ? 'no image of the workload runs'
        : `no image of the workload has a verified signer of all its running digests (${uncovered})`,
    )
  const made = await madeOr(() => textOf(source, plan))
  if ('reason' in made) return notMade(`no policy can be made: ${made.reason}`)
  return {
    documents: [objectDocument('admission', made, made.content)],
    refusal:
      source.mode === 'audit' || uncovered === ''
        ? null
        : `a policy that enforces would not cover every running image of the workload: ${uncovered}`,
  }
}

const notMade = (reason: string): Made => ({ documents: [missing('admission', reason)], refusal: null })

/** Policies match names of images, so other workloads of the namespace that run the same names count too. */
async function planFor({ db, config, key: { namespace, kind, name } }: Source): Promise<Plan> {
  const scope = {
    ...{ namespace, workload: { kind, name }, isClusterWide: false },
    windowSecs: config.imageRunningWindowSecs,
    retentionDays: config.attestationRetentionDays,
  }
  const reserve = (bytes: number) => {
    if (COPIES * bytes > MADE_BYTES) throw tooLarge()
  }
  return planOf(await readCoverage(db.read, scope, reserve))
}

async function textOf(source: Source, plan: Plan) {
  const { config, key, mode } = source
  const { annotationPrefix } = config
  const format = mode === 'audit' ? 'native' : 'policy-engine-a'
  const options: Options = {
    ...{ format, wireFormat: toWirePolicyFormat(format, config.wireNames), isEnforced: mode === 'enforce' },
    ...{ namespace: key.namespace, workload: workloadText(key), annotationPrefix },
  }
  const annotations = { [`${annotationPrefix}/source`]: 'verified signers of running images' }
  const metadataOf = (group: Group) => ({ name: nameOf(source, group), annotations })
  const texts: string[] = []
  const slice = new Slice()
  let [apiVersion, kind] = ['', '']
  for await (const made of manifestsOf(partsOf(plan.groups), options, slice, metadataOf)) {
    if (mode === 'audit') requireNativeBounds(made.spec)
    apiVersion = mode === 'audit' ? `${annotationPrefix}/v1alpha1` : made.apiVersion
    kind = made.kind
    texts.push(yamlText(annotated(source, { ...made, apiVersion })))
    if (slice.isOver) await slice.next()
  }
  const comments = [
    openingOf(source, 'admission', mode),
    ...headerOf(plan, options),
    ...(plan.elsewhere.length === 0
      ? []
      : [
          comment(
            `Policies match names of images. Other workloads of the namespace of ${quotedWorkload(key)} run images ` +
              'of these names, so their signers are accepted too.',
          ),
        ]),
  ]
  return { apiVersion, kind, content: comments.join('') + texts.join('---\n') }
}

/** @throws HttpError 422 for a policy that no cluster would accept */
function requireNativeBounds(spec: object): void {
  for (const [list, max] of Object.entries(MAX_NATIVE)) {
    const { length } = (spec as Record<string, readonly unknown[]>)[list]!
    if (length > max) throw new HttpError(422, `an ImageTrustPolicy has at most ${max} ${list}, and it needs ${length}`)
  }
}

/**
 * `<workload>-<product>-<last segment of the first repository>-<hash>`. The hash is of the workload and of all
 * repositories, so that policies of two workloads never replace each other.
 */
function nameOf(source: Source, { repositories }: Group): string {
  const names = repositories.map(({ name }) => name)
  const hash = createHash('sha256')
    .update(JSON.stringify([workloadText(source.key), ...names]))
    .digest('hex')
    .slice(0, HASH_CHARS)
  const tail = trimmedLabel(asLabel(names[0]!.slice(names[0]!.lastIndexOf('/') + 1)), MAX_TAIL_CHARS)
  const end = `${tail === '' ? '' : `-${tail}`}-${hash}`
  return `${trimmedLabel(objectName(source), MAX_NAME_CHARS - end.length)}${end}`
}
