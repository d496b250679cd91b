import { MAX_NAME_CHARS, MAX_WORD_CHARS } from '../http/request/fields.ts'
import { isObject, type JsonObject } from '../json/objects.ts'
import { shortText } from './values.ts'

const MAX_CAPABILITIES = 64

type Read = (value: unknown) => unknown

const flag: Read = (value) => (typeof value === 'boolean' ? value : undefined)
const number: Read = (value) => (Number.isSafeInteger(value) ? value : undefined)
const word: Read = (value) => shortText(value, MAX_WORD_CHARS) ?? undefined
const name: Read = (value) => shortText(value, MAX_NAME_CHARS) ?? undefined

/** Sorted, without repeats, the first 64. */
const capabilities: Read = (value) => {
  if (!Array.isArray(value)) return undefined
  const words = new Set(value.map(word).filter((one) => one !== undefined) as string[])
  return [...words].sort().slice(0, MAX_CAPABILITIES)
}

const CONTAINER: Record<string, Read> = {
  privileged: flag,
  allowPrivilegeEscalation: flag,
  runAsNonRoot: flag,
  runAsUser: number,
  runAsGroup: number,
  readOnlyRootFilesystem: flag,
  capabilitiesAdd: capabilities,
  capabilitiesDrop: capabilities,
  seccompProfileType: word,
}

const POD_CONTEXT: Record<string, Read> = {
  runAsNonRoot: flag,
  runAsUser: number,
  runAsGroup: number,
  fsGroup: number,
  seccompProfileType: word,
}

const POD: Record<string, Read> = {
  serviceAccountName: name,
  automountServiceAccountToken: flag,
  hostPID: flag,
  hostIPC: flag,
  hostNetwork: flag,
  hostUsers: flag,
  securityContext: (value) => (isObject(value) ? members(value, POD_CONTEXT) : undefined),
}

/** Reads `security_context` of a container: known keys whose values have the right type; empty if it is no object. */
export const containerSecurity = (value: unknown): JsonObject => members(value, CONTAINER)

/** Reads `pod_security` of a pod in the same way. */
export const podSecurity = (value: unknown): JsonObject => members(value, POD)

function members(value: unknown, known: Record<string, Read>): JsonObject {
  if (!isObject(value)) return {}
  const read = Object.entries(known).map(([key, of]): [string, unknown] => [key, of(value[key])])
  return Object.fromEntries(read.filter(([, member]) => member !== undefined))
}
