/** Fields that both kinds of policy have, validated as the API server does (docs/contract.md#network-policies). */
import { z } from 'zod'
import { listOf } from '../../http/request/first-fault.ts'
import { isDnsName, MAX_DNS_NAME_CHARS } from '../../seccomp/names.ts'
import type { Requirement, Selector } from '../policy.ts'
import { MAX_MEMBERS, strict, text } from './place.ts'

/** Longest DNS label, and longest name and value of a label. */
const MAX_LABEL_CHARS = 63
const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/
const LABEL_NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/

export const dnsSubdomain = text(
  isDnsName,
  `expected a DNS subdomain: lower-case letters, digits, '-' and '.', at most ${MAX_DNS_NAME_CHARS} characters`,
)
/** Empty where the namespace is not given. */
export const namespaceName = text(
  (name) => name === '' || (name.length <= MAX_LABEL_CHARS && DNS_LABEL.test(name)),
  `expected a DNS label: lower-case letters, digits and '-', at most ${MAX_LABEL_CHARS} characters`,
)

const isLabelName = (name: string) => name.length <= MAX_LABEL_CHARS && LABEL_NAME.test(name)

/** A name of at most 63 characters, with or without a DNS subdomain and a slash before it. */
export function isLabelKey(key: string): boolean {
  const slash = key.indexOf('/')
  return slash < 0 ? isLabelName(key) : isDnsName(key.slice(0, slash)) && isLabelName(key.slice(slash + 1))
}

const LABEL_KEY = 'expected a label key such as app or example.com/app'

/** Empty, or a name of at most 63 characters. */
export const isLabelValue = (value: string): boolean => value === '' || isLabelName(value)

const labelValue = text(
  isLabelValue,
  `expected a label value: at most ${MAX_LABEL_CHARS} letters, digits, '-', '_' and '.'`,
)

/**
 * An object of strings. Not a record of zod: that skips the key `__proto__`, which JSON may have, and validates all
 * members after a fault.
 */
export const strings = (isKey: (key: string) => boolean, value: z.ZodType<string>) =>
  z.unknown().transform((sent, c): [string, string][] => {
    const members: [string, string][] = []
    if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) {
      c.addIssue({ code: 'custom', message: 'expected an object' })
      return z.NEVER
    }
    for (const [key, one] of Object.entries(sent)) {
      const { data, error } = value.safeParse(one, { reportInput: true })
      if (!error && isKey(key)) members.push([key, data])
      else {
        c.issues.push(
          error && isKey(key)
            ? { ...error.issues[0]!, path: [key], input: one }
            : { code: 'custom', message: LABEL_KEY, path: [key], input: key },
        )
        return z.NEVER
      }
    }
    return members
  })

export const labels = strings(isLabelKey, labelValue)
/** The part of a key before the slash may have capital letters. */
export const annotations = strings((key) => isLabelKey(key.toLowerCase()), z.string())

const requirement = (isKey: (key: string) => boolean) =>
  strict({
    key: text(isKey, LABEL_KEY),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
    values: listOf(labelValue, MAX_MEMBERS).nullish(),
  }).transform(({ key, operator, values: sent }, c): Requirement => {
    const values = sent ?? []
    const needsValues = operator === 'In' || operator === 'NotIn'
    if (needsValues !== values.length > 0) {
      const message = `expected ${needsValues ? 'a value at least' : 'no values'}: the operator is ${operator}`
      c.addIssue({ code: 'custom', path: ['values'], message })
    }
    return { key, operator, values }
  })

/** A LabelSelector (meta/v1). `isKey` tells which keys it may have. */
export const selectorWith = (isKey: (key: string) => boolean) =>
  strict({
    matchLabels: strings(isKey, labelValue).nullish(),
    matchExpressions: listOf(requirement(isKey), MAX_MEMBERS).nullish(),
  }).transform(
    ({ matchLabels, matchExpressions }): Selector => [
      // "A single {key,value} in the matchLabels map is equivalent to an element of matchExpressions" with `In`.
      ...(matchLabels ?? []).map(([key, value]): Requirement => ({ key, operator: 'In', values: [value] })),
      ...(matchExpressions ?? []),
    ],
  )

export const selector = selectorWith(isLabelKey)

export const MAX_PORT = 65_535
const MAX_PORT_NAME_CHARS = 15

/** IANA_SVC_NAME (RFC 6335, 5.1), in lower case. */
export const isPortName = (name: string): boolean =>
  name.length <= MAX_PORT_NAME_CHARS && DNS_LABEL.test(name) && /[a-z]/.test(name) && !name.includes('--')

export const PORT_NAME = `a port name: at most ${MAX_PORT_NAME_CHARS} lower-case letters, digits and '-', with a letter`
