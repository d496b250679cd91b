/** The `metadata` of a policy: all fields of ObjectMeta, those that the API server sets included. */
import { z } from 'zod'
import { annotations, dnsSubdomain, labels, namespaceName } from './fields.ts'
import { type Place, read, strict } from './place.ts'

const DEFAULT_NAMESPACE = 'default'

const Metadata = strict({
  name: dnsSubdomain,
  namespace: namespaceName.nullish(),
  labels: labels.nullish(),
  annotations: annotations.nullish(),
  generateName: z.unknown().optional(),
  selfLink: z.unknown().optional(),
  uid: z.unknown().optional(),
  resourceVersion: z.unknown().optional(),
  generation: z.unknown().optional(),
  creationTimestamp: z.unknown().optional(),
  deletionTimestamp: z.unknown().optional(),
  deletionGracePeriodSeconds: z.unknown().optional(),
  ownerReferences: z.unknown().optional(),
  finalizers: z.unknown().optional(),
  managedFields: z.unknown().optional(),
})

export function readMetadata(sent: unknown, place: Place): { readonly namespace: string; readonly name: string } {
  const { name, namespace } = read(Metadata, sent, place)
  return { name, namespace: namespace || DEFAULT_NAMESPACE }
}
