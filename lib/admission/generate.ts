/** Renders the policies of a plan as one text (docs/contract.md#policies). */
import { HttpError } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import { oneLine } from '../text/one-line.ts'
import { type Manifest, quoted, yamlOf } from '../text/yaml.ts'
import { headerOf, namespaceList } from './header.ts'
import { kyvernoPolicy } from './kyverno.ts'
import { MAX_POLICY_BYTES, type ReserveMemory, TEXT_COPIES, tooLarge } from './limits.ts'
import { namesOf } from './name.ts'
import { nativePolicy } from './native.ts'
import { partsOf } from './parts.ts'
import type { Group, Options, Plan } from './plan.ts'
import { PROVENANCE_SUFFIX, policyControllerPolicies } from './policy-controller.ts'

/** Throws 409 if enforcing policies would not cover every running image. */
export function requireFullCoverage({ uncovered }: Plan): void {
  if (uncovered.length === 0) return
  const what = uncovered.map(({ name, reason }) => oneLine(`${quoted(name)} (${reason})`)).join('; ')
  throw new HttpError(
    409,
    `an enforcing policy would not cover every running image: ${what}. acknowledgePartial=true generates it all the ` +
      'same',
  )
}

/**
 * Throws 409 if enforcing policies for one namespace would also bind other namespaces that run images of the same
 * names.
 */
export function requireNoOtherNamespaces({ elsewhere }: Plan): void {
  if (elsewhere.length === 0) return
  throw new HttpError(
    409,
    'an enforcing ClusterImagePolicy binds the whole cluster, and images of the same names run in ' +
      `${namespaceList(elsewhere)}, too. acknowledgeClusterWide=true generates it all the same`,
  )
}

/**
 * Returns the text of the policies with comments above them. `reserve` is given the bytes held so far. Throws 422 for
 * more than 10 MiB.
 */
export async function generate(plan: Plan, options: Options, reserve: ReserveMemory = () => {}): Promise<Buffer> {
  const slice = new Slice()
  const parts: Buffer[] = []
  let bytes = 0
  for await (const text of textOf(plan, options, slice)) {
    const part = Buffer.from(text)
    parts.push(part)
    bytes += part.length
    if (bytes > MAX_POLICY_BYTES) throw tooLarge()
    await reserve(TEXT_COPIES * bytes)
    if (slice.isOver) await slice.next()
  }
  return Buffer.concat(parts, bytes)
}

async function* textOf(plan: Plan, options: Options, slice: Slice): AsyncGenerator<string> {
  yield* headerOf(plan, options)
  let isFirst = true
  for await (const manifest of namedManifests(partsOf(plan.groups), options, slice)) {
    if (!isFirst) yield '---\n'
    isFirst = false
    yield* yamlOf(manifest)
  }
}

function namedManifests(groups: readonly Group[], options: Options, slice: Slice): AsyncGenerator<Manifest> {
  const { format, annotationPrefix, namespace } = options
  const names = namesOf(
    groups,
    format === 'policy-engine-b' ? PROVENANCE_SUFFIX : '',
    format === 'native' ? null : namespace,
  )
  const annotations = {
    [`${annotationPrefix}/generated-by`]: 'kguardian',
    [`${annotationPrefix}/source`]: 'signatures of running images',
  }
  return manifestsOf(groups, options, slice, (_, i) => ({ name: names[i]!, annotations }))
}

/** The policies of groups as objects, in their order; `metadataOf` names the policy of a group. */
export async function* manifestsOf(
  groups: readonly Group[],
  options: Options,
  slice: Slice,
  metadataOf: (group: Group, i: number) => { readonly name: string; readonly annotations: object },
): AsyncGenerator<Manifest> {
  for (const [i, group] of groups.entries()) {
    const metadata = metadataOf(group, i)
    if (options.format === 'policy-engine-a') yield await kyvernoPolicy(group, metadata, options, slice)
    else if (options.format === 'native') yield nativePolicy(group, metadata, options)
    else yield* policyControllerPolicies(group, metadata, options)
  }
}
