/** The text of a patch. */
import { isObject, type JsonObject } from '../../json/objects.ts'
import { yamlScalar } from '../../text/yaml-scalar.ts'
import { LISTS } from './checks.ts'
import type { Patch, PatchedContainer } from './patch.ts'

const HEADER =
  '# Recommendation only: nothing was applied. Review it before use.\n' +
  '# Target: level restricted of the Pod Security Standards of Kubernetes.\n'

/** YAML under the path of the template of this kind of workload. */
export function patchYaml(workloadKind: string, { pod, containers }: Patch): string {
  const spec = { ...pod, ...listOf('init', containers), ...listOf('regular', containers) }
  return HEADER + linesOf(underTemplate(workloadKind, spec)).join('')
}

function underTemplate(workloadKind: string, spec: JsonObject): JsonObject {
  if (workloadKind === 'Pod') return { spec }
  const template = { spec: { template: { spec } } }
  return workloadKind === 'CronJob' ? { spec: { jobTemplate: template } } : template
}

function listOf(kind: 'init' | 'regular', containers: readonly PatchedContainer[]): JsonObject {
  const ofKind = containers.filter((container) => container.kind === kind)
  if (ofKind.length === 0) return {}
  return { [LISTS[kind]]: ofKind.map(({ name, patch }) => ({ name, securityContext: patch })) }
}

/** Lines of a mapping. Its lists are of texts, in one line, or of mappings. */
const linesOf = (mapping: object, indent = ''): string[] =>
  Object.entries(mapping).flatMap(([key, value]) => {
    if (isObject(value)) return [`${indent}${key}:\n`, ...linesOf(value, `${indent}  `)]
    if (!Array.isArray(value)) return [`${indent}${key}: ${typeof value === 'string' ? yamlScalar(value) : value}\n`]
    if (!value.some(isObject)) return [`${indent}${key}: [${value.map((text) => JSON.stringify(text)).join(', ')}]\n`]
    return [`${indent}${key}:\n`, ...value.flatMap((item) => itemLines(item, indent))]
  })

const itemLines = (item: object, indent: string): string[] => {
  const [first, ...others] = linesOf(item, `${indent}  `)
  return [`${indent}- ${first!.trimStart()}`, ...others]
}
