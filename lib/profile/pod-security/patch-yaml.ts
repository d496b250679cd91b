/** The text of a patch. */
import { isObject, type JsonObject } from '../../json/objects.ts'
import { yamlScalar } from '../../text/yaml-scalar.ts'
import { LISTS } from './checks.ts'
import type { Patch, PatchedContainer } from './patch.ts'

const HEADER =
  '# Recommendation only: nothing was applied. Review it before use.\n' +
  '# Target: level restricted of the Pod Security Standards of Kubernetes.\n'

const STEP = '  '

/** YAML under the path of the template of this kind of workload. */
export function patchYaml(workloadKind: string, { pod, containers }: Patch): string {
  const spec = { ...pod, ...listOf('init', containers), ...listOf('regular', containers) }
  return HEADER + textOf(underTemplate(workloadKind, spec))
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

/** The text of a mapping. Its lists are of texts, in one line, or of mappings. */
function textOf(mapping: object, indent = ''): string {
  let text = ''
  for (const [key, value] of Object.entries(mapping)) {
    const start = `${indent}${key}:`
    if (isObject(value)) text += `${start}\n${textOf(value, indent + STEP)}`
    else if (!Array.isArray(value)) text += `${start} ${typeof value === 'string' ? yamlScalar(value) : value}\n`
    else if (value.some(isObject)) text += `${start}\n${value.map((item) => itemText(item, indent)).join('')}`
    else text += `${start} [${value.map((one) => JSON.stringify(one)).join(', ')}]\n`
  }
  return text
}

/** The dash of an item takes the place of the indent of its first line. */
const itemText = (item: object, indent: string): string =>
  `${indent}- ${textOf(item, indent + STEP).slice(indent.length + STEP.length)}`
