/** ImageTrustPolicy and ClusterImageTrustPolicy of kguardian.dev/v1alpha1, which the evaluator reports on. */

import type { Manifest } from '../text/yaml.ts'
import { type Authority, identityOf } from './authority.ts'
import type { Group, Options } from './plan.ts'
import { isPlainName } from './repository.ts'

export function nativePolicy(
  { repositories, authorities, predicate }: Group,
  metadata: object,
  { namespace }: Options,
): Manifest {
  // The evaluator compares with the names of the inventory.
  const images = new Set(repositories.flatMap(({ name, given }) => [name, ...[...given].filter(isPlainName)]))
  return {
    apiVersion: 'kguardian.dev/v1alpha1',
    kind: namespace === null ? 'ClusterImageTrustPolicy' : 'ImageTrustPolicy',
    metadata: namespace === null ? metadata : { ...metadata, namespace },
    spec: {
      images: [...images].sort(),
      authorities: authorities.map((authority, i) => ({ name: `a${i}`, ...signerOf(authority) })),
      ...(predicate === null ? {} : { attestations: [{ predicateType: predicate }] }),
    },
  }
}

const signerOf = (authority: Authority) =>
  authority.kind === 'key' ? { key: { publicKey: authority.pem } } : { keyless: identityOf(authority) }
