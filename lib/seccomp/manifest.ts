/** The custom resource of an export (docs/contract.md#seccomp-profiles). */
import { z } from 'zod'
import type { Manifest } from '../text/yaml.ts'
import { ACTIONS, type ExportOptions } from './export-options.ts'
import { ALLOW_ACTION, allowedOf, profileArchitectures, suggestedName, type Workload } from './names.ts'
import type { Observed } from './observed.ts'
import { named, reasonOf } from './partial-capture.ts'

const Syscalls = z.strictObject({ names: z.array(z.string()), action: z.literal(ALLOW_ACTION) })

/** The resource, for the OpenAPI document. */
export const SeccompProfile = z
  .strictObject({
    apiVersion: z.string().describe('The version of the operator of the profiles: `{annotation_prefix}/v1alpha1`.'),
    kind: z.literal('SeccompProfile'),
    metadata: z.strictObject({
      name: z.string(),
      namespace: z.string(),
      annotations: z
        .record(z.string(), z.string())
        .describe(
          '`{annotation_prefix}/capture-complete`, `capture-level`; `capture-warning` where the capture is ' +
            'partial; `left-out-syscalls` where something was observed that is no name of a syscall; `reset-at` ' +
            'where the set was reset and is not complete since.',
        ),
    }),
    spec: z.strictObject({
      defaultAction: z.enum(ACTIONS),
      architectures: z.array(z.string()).optional().describe('None where none was recorded.'),
      syscalls: z.array(Syscalls).describe('One rule, or none where no name is left.'),
      workloadRef: z.strictObject({ kind: z.string(), name: z.string() }),
    }),
  })
  .meta({ id: 'SeccompProfileResource' })

/** The allowed names of an export: observed and added ones, without the removed ones. */
export function editedNames(
  names: readonly string[],
  { add, remove }: Pick<ExportOptions, 'add' | 'remove'>,
): string[] {
  const removed = new Set(remove)
  return [...new Set([...names, ...add])].filter((name) => !removed.has(name)).sort()
}

/** The custom resource for the observed syscalls of a workload; its annotations are sorted by key. */
export function manifestOf(workload: Workload, observed: Observed, options: ExportOptions, prefix: string): Manifest {
  const { capture } = observed
  const { names, leftOut } = allowedOf(observed.names)
  const exported = editedNames(names, options)
  const architectures = profileArchitectures(observed.arches)
  return {
    apiVersion: `${prefix}/v1alpha1`,
    kind: 'SeccompProfile',
    metadata: {
      name: options.name ?? suggestedName(workload),
      namespace: workload.namespace,
      annotations: {
        [`${prefix}/capture-complete`]: String(capture.complete),
        [`${prefix}/capture-level`]: capture.level,
        ...(capture.complete ? {} : { [`${prefix}/capture-warning`]: warningOf(observed) }),
        ...(leftOut.length > 0 ? { [`${prefix}/left-out-syscalls`]: named(leftOut) } : {}),
        ...(observed.resetAt !== null && !capture.complete ? { [`${prefix}/reset-at`]: observed.resetAt } : {}),
      },
    },
    spec: {
      defaultAction: options.defaultAction,
      ...(architectures.length > 0 ? { architectures } : {}),
      syscalls: exported.length > 0 ? [{ names: exported, action: ALLOW_ACTION }] : [],
      workloadRef: { kind: workload.kind, name: workload.name },
    },
  }
}

const warningOf = ({ capture }: Observed): string =>
  `Syscall capture is partial (${reasonOf(capture)}): what it missed is not in this profile, which blocks it where ` +
  'it enforces.'
