/**
 * ImageValidatingPolicy of policies.kyverno.io/v1beta1. It matches images by the text in the pod spec, with patterns in
 * which `*` is any text (https://kyverno.io/docs/policy-types/image-validating-policy).
 */

import type { Slice } from '../event-loop/slices.ts'
import { sortInSlices } from '../event-loop/sort-in-slices.ts'
import type { Manifest } from '../text/yaml.ts'
import { sigstoreSigner } from './authority.ts'
import { MAX_POLICY_BYTES, tooLarge } from './limits.ts'
import type { Group, Options } from './plan.ts'
import { podNames } from './repository.ts'

const CONTAINER_LISTS = {
  containers: 'container',
  initContainers: 'init container',
  ephemeralContainers: 'ephemeral container',
}
/** Least bytes of an authority in a policy beside its text: as an attestor, and in the expression of each list. */
const BYTES_PER_AUTHORITY = 150

export async function kyvernoPolicy(
  group: Group,
  metadata: object,
  { isEnforced, namespace }: Options,
  slice: Slice,
): Promise<Manifest> {
  const { authorities, predicate } = group
  if (authorities.length * BYTES_PER_AUTHORITY > MAX_POLICY_BYTES) throw tooLarge()
  const attestors = `[${authorities.map((_, i) => `attestors.a${i}`).join(', ')}]`
  return {
    apiVersion: 'policies.kyverno.io/v1beta1',
    kind: 'ImageValidatingPolicy',
    metadata,
    spec: {
      validationActions: [isEnforced ? 'Deny' : 'Audit'],
      matchConstraints: {
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['pods'] },
        ],
        // The API server sets this label on every namespace. The namespaced kind of this policy does not exist in all
        // versions of Kyverno that have this one.
        ...(namespace !== null && {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
        }),
      },
      // The rules that Kyverno derives from these for Deployments and the like may lose the selector.
      ...(namespace !== null && { autogen: { podControllers: { controllers: [] } } }),
      // A name alone, with a tag, with a digest.
      matchImageReferences: (await namesOf(group, slice)).flatMap((name) => [
        { glob: name },
        { glob: `${name}:*` },
        { glob: `${name}@*` },
      ]),
      // Both default to true, and then even an auditing policy rewrites pods.
      validationConfigurations: { mutateDigest: isEnforced, verifyDigest: isEnforced },
      attestors: authorities.map((authority, i) => ({ name: `a${i}`, cosign: sigstoreSigner(authority) })),
      ...(predicate !== null && { attestations: [{ name: 'p0', intoto: { type: predicate } }] }),
      validations: [
        ...validations(`verifyImageSignatures(image, ${attestors})`, 'is not signed'),
        ...(predicate === null
          ? []
          : validations(`verifyAttestationSignatures(image, attestations.p0, ${attestors})`, 'has no provenance')),
      ],
    },
  }
}

/** Every name that pod specs have, or may have, for the repositories, sorted. */
async function namesOf({ repositories }: Group, slice: Slice): Promise<string[]> {
  const names = new Set<string>()
  for (const repository of repositories) {
    for (const name of podNames(repository)) names.add(name)
    if (slice.isOver) await slice.next()
  }
  return sortInSlices([...names], (a, b) => a < b, slice)
}

const validations = (verified: string, fault: string) =>
  Object.entries(CONTAINER_LISTS).map(([list, what]) => ({
    expression: `!has(images.${list}) || images.${list}.map(image, ${verified}).all(count, count > 0)`,
    message: `An image of ${what === 'container' ? 'a' : 'an'} ${what} ${fault} by any of the signers of this policy`,
  }))
