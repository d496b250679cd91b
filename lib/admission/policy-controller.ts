/**
 * ClusterImagePolicy of policy.sigstore.dev/v1beta1 (https://docs.sigstore.dev/policy-controller/overview). References
 * of pods are expanded before they are matched: to a tag or a digest, and for Docker Hub to its host. `**` is any text.
 * The policy has no namespace and binds every namespace that has opted in.
 */

import type { Manifest } from '../text/yaml.ts'
import { sigstoreSigner } from './authority.ts'
import type { Group, Options } from './plan.ts'
import { writtenNames } from './repository.ts'

/** Suffix of the name of the second policy. */
export const PROVENANCE_SUFFIX = '-provenance'

/**
 * Returns one policy for signatures, and a second one for a required predicate: an authority with attestations does not
 * check signatures, and an image has to pass every policy that matches it.
 */
export function policyControllerPolicies(
  group: Group,
  metadata: { readonly name: string },
  { isEnforced }: Options,
): Manifest[] {
  const { repositories, authorities, predicate } = group
  const named = [...new Set(repositories.flatMap((one) => [...writtenNames(one)]))].sort()
  const images = named.flatMap((name) => [{ glob: `${name}:**` }, { glob: `${name}@**` }])
  const manifest = (name: string, attestations: object): Manifest => ({
    apiVersion: 'policy.sigstore.dev/v1beta1',
    kind: 'ClusterImagePolicy',
    metadata: { ...metadata, name },
    spec: {
      mode: isEnforced ? 'enforce' : 'warn',
      images,
      authorities: authorities.map((authority, i) => ({
        name: `a${i}`,
        ...sigstoreSigner(authority),
        ...attestations,
      })),
    },
  })
  const signed = manifest(metadata.name, {})
  if (predicate === null) return [signed]
  const attestations = [{ name: 'p0', predicateType: predicate }]
  return [signed, manifest(metadata.name + PROVENANCE_SUFFIX, { attestations })]
}
