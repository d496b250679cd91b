/** Kubernetes objects that are posted with pods and services. */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { MAX_ID_CHARS } from '../http/request/fields.ts'
import { isExactInteger } from '../json/exact-integers.ts'
import { isObject, type JsonObject } from '../json/objects.ts'
import { documentedAs } from '../openapi/declare.ts'

export const postedObject = (description: string) =>
  documentedAs(z.custom<JsonObject>(isObject, 'expected an object'), { type: 'object', description })

/** Every key of `record` in wire order, with null for those that the post leaves out. */
export const asPosted = <R extends z.ZodObject>(record: R, post: object): z.output<R> =>
  Object.fromEntries(Object.keys(record.shape).map((key) => [key, (post as JsonObject)[key] ?? null])) as z.output<R>

/** The value of `inner` in the object `outer` of an object; undefined if there is none. */
export function member(value: unknown, outer: string, inner: string): unknown {
  const object = isObject(value) ? value[outer] : undefined
  return isObject(object) ? object[inner] : undefined
}

/** `metadata.uid`; null if missing, empty or longer than an id: every flow to the pod or service repeats it. */
export function uidOf(object: JsonObject | null): string | null {
  const uid = member(object, 'metadata', 'uid')
  return typeof uid === 'string' && uid !== '' && uid.length <= MAX_ID_CHARS && !isExactInteger(uid) ? uid : null
}

/**
 * Whether a manifest names an owner other than its node, which owns the mirror of a static pod; null if there is no
 * manifest.
 */
export function hasOwner(object: JsonObject | null): boolean | null {
  if (uidOf(object) === null) return null
  const owners = member(object, 'metadata', 'ownerReferences')
  return Array.isArray(owners) && owners.some((owner) => !isObject(owner) || owner.kind !== 'Node')
}

/** More named ports than any pod has; further ones are left out. */
const MAX_NAMED_PORTS = 64
const MAX_PORT_NAME_CHARS = 63

const PROTOCOLS = ['TCP', 'UDP', 'SCTP']

/**
 * The numbers of the ports that the containers name, by name and protocol, such as `http/TCP`; null without a manifest.
 * Of containers that share both, the first counts, as for services that name a target port.
 */
export function namedPorts(object: JsonObject | null): Record<string, number> | null {
  if (object === null) return null
  const containers = objectsOf(member(object, 'spec', 'containers'))
  const sidecars = objectsOf(member(object, 'spec', 'initContainers')).filter((one) => one.restartPolicy === 'Always')
  const ports = [...containers, ...sidecars].flatMap((one) => objectsOf(one.ports))
  const named = new Map<string, number>()
  for (const { name, containerPort, protocol } of ports) {
    const isNamed = typeof name === 'string' && /^[a-z0-9-]+$/.test(name) && name.length <= MAX_PORT_NAME_CHARS
    const known = PROTOCOLS.find((one) => one === (protocol ?? 'TCP'))
    const key = `${name}/${known}`
    if (!isNamed || known === undefined || !isPort(containerPort) || named.has(key)) continue
    if (named.size < MAX_NAMED_PORTS) named.set(key, containerPort)
  }
  return Object.fromEntries(named)
}

const objectsOf = (list: unknown): JsonObject[] => (Array.isArray(list) ? list.filter(isObject) : [])

const isPort = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) <= 65_535

/**
 * A hash of the labels as `record_pod_labels` reads them from the stored manifest, with the members whose value is a
 * string, as 128 bits: the database compares labels by it. Null if there is no manifest.
 */
export function labelsHash(object: JsonObject | null): string | null {
  if (object === null) return null
  const labels = member(object, 'metadata', 'labels')
  const entries = isObject(labels) ? Object.entries(labels).filter(([, value]) => isText(value)) : []
  // By code unit. Keys differ, so that values are never compared.
  entries.sort(([a], [b]) => (a < b ? -1 : 1))
  // PostgreSQL reads a uuid without hyphens, too.
  return hash('sha256', JSON.stringify(entries)).slice(0, 32)
}

const isText = (value: unknown): boolean => typeof value === 'string' && !isExactInteger(value)

export function withoutManagedFields({ managedFields: _dropped, ...metadata }: JsonObject): JsonObject {
  return metadata
}
