import { z } from 'zod'
import { address, naiveTime, name, wireTime } from '../http/request/fields.ts'
import { exactly } from '../json/exact-integers.ts'
import { isObject, type JsonObject } from '../json/objects.ts'
import { checkFreeForm } from '../json/parse.ts'
import { canonicalAddress } from '../net/address.ts'
import { asPosted, postedObject, withoutManagedFields } from '../pods/posted-object.ts'

/** The body of POST /svc/spec (docs/contract.md#services). Unknown keys are dropped. */
export const ServicePost = z
  .object({
    svc_ip: address,
    time_stamp: naiveTime,
    svc_name: name.nullish(),
    svc_namespace: name.nullish(),
    service_spec: postedObject(
      'The whole service object; `status` and `metadata.managedFields` are dropped.',
    ).nullish(),
  })
  .meta({ id: 'ServicePost' })
export type ServicePost = z.output<typeof ServicePost>

/** A service in the form of all reads, keys in wire order. */
export const ServiceRecord = z
  .strictObject({
    svc_ip: z.string(),
    svc_name: z.string().nullable(),
    svc_namespace: z.string().nullable(),
    service_spec: z.record(z.string(), z.unknown()).nullable(),
    time_stamp: wireTime,
  })
  .meta({ id: 'ServiceRecord' })
export type ServiceRecord = z.output<typeof ServiceRecord>

/** ExternalName and headless services have no address and are not stored. */
export const hasClusterAddress = (post: ServicePost) => post.svc_ip !== '' && post.svc_ip !== 'None'

/** The answer to a service without an address: the record as posted, if it could be stored. */
export function echoOfService(post: ServicePost): ServiceRecord {
  checkFreeForm(post.service_spec, 'service_spec')
  return asPosted(ServiceRecord, { ...post, service_spec: exactly(post.service_spec) })
}

/** The record as stored: canonical address, no `status` and no `metadata.managedFields`. */
export function normalizeService(post: ServicePost): ServiceRecord {
  return {
    ...asPosted(ServiceRecord, post),
    svc_ip: canonicalAddress(post.svc_ip),
    service_spec: post.service_spec ? compact(exactly(post.service_spec)) : null,
  }
}

function compact({ status: _status, ...spec }: JsonObject): JsonObject {
  if (isObject(spec.metadata)) spec.metadata = withoutManagedFields(spec.metadata)
  checkFreeForm(spec, 'service_spec')
  return spec
}
