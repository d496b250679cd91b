/** The body of a trial of policies (docs/contract.md#network-policies). */
import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { HttpError } from '../errors.ts'

/** The content types of the body, each with its format. */
const FORMATS = {
  'application/yaml': 'yaml',
  'application/json': 'json',
} as const

export const CONTENT_TYPES = Object.keys(FORMATS)

/** One document; the parser judges the rest of it. */
export const PolicyDocuments = z
  .looseObject({
    apiVersion: z.enum(['networking.k8s.io/v1', 'cilium.io/v2', 'v1']),
    kind: z.enum(['NetworkPolicy', 'CiliumNetworkPolicy', 'List', 'NetworkPolicyList', 'CiliumNetworkPolicyList']),
  })
  .meta({
    id: 'PolicyDocument',
    description: 'A policy as it is applied, or a list of them. YAML may have several documents, JSON is one.',
  })

/** @throws HttpError 400 for another content type */
export function formatOf(contentType: string | undefined): 'yaml' | 'json' {
  const type = (contentType ?? '').split(';')[0]!.trim().toLowerCase()
  const format = Object.hasOwn(FORMATS, type) ? FORMATS[type as keyof typeof FORMATS] : undefined
  if (format === undefined) throw new HttpError(400, `Content type error: expected ${CONTENT_TYPES.join(' or ')}`)
  return format
}

/** @throws HttpError 400 for bytes that are not UTF-8 */
export function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new HttpError(400, 'policies: the body is not UTF-8')
  return bytes.toString()
}
