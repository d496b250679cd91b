import { z } from 'zod'
import { address, MAX_ID_CHARS, naiveTime, name, wireTime } from '../http/request/fields.ts'
import { exactly, isExactInteger } from '../json/exact-integers.ts'
import { checkFreeForm } from '../json/parse.ts'
import { canonicalAddress } from '../net/address.ts'
import { documentedAs } from '../openapi/declare.ts'

type Json = Record<string, unknown>

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The body of POST /svc/spec (docs/contract.md#services). Unknown keys are dropped. */
export const ServicePost = z
  .object({
    svc_ip: address,
    time_stamp: naiveTime,
    svc_name: name.nullish(),
    svc_namespace: name.nullish(),
    service_spec: documentedAs(z.custom<Json>(isObject, 'expected an object'), {
      type: 'object',
      description: 'The whole service object; `status` and `metadata.managedFields` are dropped.',
    }).nullish(),
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

/** The answer to a service without an address: the record as posted, unless it is nested too deep to be serialized. */
export function echoOfService(post: ServicePost): ServiceRecord {
  checkFreeForm(post.service_spec, 'service_spec')
  return asPosted({ ...post, service_spec: exactly(post.service_spec) })
}

/** Every key, with null for missing ones. */
function asPosted(post: ServicePost): ServiceRecord {
  return {
    svc_ip: post.svc_ip,
    svc_name: post.svc_name ?? null,
    svc_namespace: post.svc_namespace ?? null,
    service_spec: post.service_spec ?? null,
    time_stamp: post.time_stamp,
  }
}

/** The record as stored: canonical address, no `status` and no `metadata.managedFields`. */
export function normalizeService(post: ServicePost): ServiceRecord {
  return {
    ...asPosted(post),
    svc_ip: canonicalAddress(post.svc_ip),
    service_spec: post.service_spec ? compact(exactly(post.service_spec)) : null,
  }
}

/** `metadata.uid` of a service object; null if missing, empty or longer than an id. */
export function serviceUid(spec: Json | null): string | null {
  const uid = isObject(spec?.metadata) ? spec.metadata.uid : null
  return typeof uid === 'string' && uid !== '' && uid.length <= MAX_ID_CHARS && !isExactInteger(uid) ? uid : null
}

function compact({ status: _status, ...spec }: Json): Json {
  if (isObject(spec.metadata)) {
    const { managedFields: _dropped, ...metadata } = spec.metadata
    spec.metadata = metadata
  }
  checkFreeForm(spec, 'service_spec')
  return spec
}
