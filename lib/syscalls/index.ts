import { z } from 'zod'
import { naiveTime, name, wireTime, word } from '../http/fields.ts'

const MAX_NAMES = 4_096

/** A name as it stands in the comma-joined list; unknown numbers come as decimal text. */
const SyscallName = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[^,]*$/, 'a comma is not allowed')

/** The body of POST /pod/syscalls (interop-core 1.6): every key is required. */
export const SyscallBatch = z.array(
  z
    .object({
      pod_name: name,
      pod_namespace: name,
      syscalls: z.array(SyscallName).max(MAX_NAMES),
      arch: word,
      time_stamp: naiveTime,
    })
    .meta({ id: 'SyscallPost' }),
)

/** The syscalls of a pod as they are read, keys in wire order (interop-core 1.6). */
export const SyscallRecord = z
  .strictObject({
    pod_name: z.string(),
    pod_namespace: z.string(),
    syscalls: z.string().describe('Names in first-seen order, joined with commas.'),
    arch: z.string(),
    time_stamp: wireTime,
  })
  .meta({ id: 'SyscallRecord' })

/** What is to be added to one pod, names each once. */
export interface PodSyscalls {
  pod_name: string
  pod_namespace: string
  syscalls: string[]
  arch: string
  time_stamp: string
}

/**
 * One entry a pod, in order of first appearance: names united in first-seen order, the rest as the newest entry has it
 * (interop-core D7, D18). Entries without a pod name are left out.
 */
export function unitePods(entries: readonly PodSyscalls[]): PodSyscalls[] {
  const pods = new Map<string, { entry: PodSyscalls; names: Set<string> }>()
  for (const entry of entries) {
    if (entry.pod_name.trim() === '') continue
    const known = pods.get(entry.pod_name)
    if (!known) pods.set(entry.pod_name, { entry, names: new Set(entry.syscalls) })
    else {
      for (const one of entry.syscalls) known.names.add(one)
      // Canonical times sort as text.
      if (entry.time_stamp >= known.entry.time_stamp) known.entry = entry
    }
  }
  return [...pods.values()].map(({ entry, names }) => ({ ...entry, syscalls: [...names] }))
}
