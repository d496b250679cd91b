import { z } from 'zod'
import { MAX_WORD_CHARS, naiveTime, name, wireTime, word } from '../http/request/fields.ts'
import { listOf } from '../http/request/first-fault.ts'
import { documentedAs } from '../openapi/declare.ts'

/** A post has an entry per pod whose set changed; a node runs a few hundred pods. */
export const MAX_SYSCALL_ENTRIES = 10_000
const MAX_NAMES = 4_096

const isBlank = (text: string) => text.trim() === ''

/** A name of the comma-joined list; unknown numbers come as decimal text. */
const SyscallName = documentedAs(
  z.string().check(({ value, issues }) => {
    if (isBlank(value)) return
    const rule =
      value.length > MAX_WORD_CHARS
        ? `more than ${MAX_WORD_CHARS} characters`
        : value.includes(',')
          ? 'a comma is not allowed'
          : null
    if (rule !== null) issues.push({ code: 'custom', message: rule, input: value })
  }),
  { type: 'string', pattern: `^([^,\\u0000]{0,${MAX_WORD_CHARS}}|\\s*)$`, description: 'Blank ones are skipped.' },
)

const SyscallPost = z
  .object({
    pod_name: name,
    pod_namespace: name,
    syscalls: listOf(SyscallName, MAX_NAMES),
    arch: word,
    time_stamp: naiveTime,
  })
  .meta({ id: 'SyscallPost' })

/** The body of POST /pod/syscalls (docs/contract.md#syscalls): every key is required. */
export const SyscallBatch = listOf(SyscallPost, MAX_SYSCALL_ENTRIES)

/** The syscalls of a pod in the form of all reads, keys in wire order. */
export const SyscallRecord = z
  .strictObject({
    pod_name: z.string(),
    pod_namespace: z.string(),
    syscalls: z.string().describe('Names in first-seen order, joined with commas.'),
    arch: z.string(),
    time_stamp: wireTime,
  })
  .meta({ id: 'SyscallRecord' })

/** The names to add to one pod. */
export type PodSyscalls = z.output<typeof SyscallPost>

/**
 * The single entries, which tell the senders apart; entries that differ only in names are merged. Null if that leaves
 * one entry per pod, which `unitePods` covers.
 */
export function sentApart(entries: readonly PodSyscalls[]): PodSyscalls[] | null {
  const sent = united(entries, ({ pod_name, pod_namespace, arch, time_stamp }) =>
    JSON.stringify([pod_name, pod_namespace, arch, time_stamp]),
  )
  return sent.length === new Set(sent.map(({ pod_name }) => pod_name)).size ? null : sent
}

/** One entry per pod. */
export const unitePods = (entries: readonly PodSyscalls[]): PodSyscalls[] => united(entries, ({ pod_name }) => pod_name)

/**
 * One entry for each key, in order of first appearance: names without repeats in first-seen order, the other fields of
 * the newest entry. Entries without a pod name are left out, and so are blank names.
 */
function united(entries: readonly PodSyscalls[], keyOf: (entry: PodSyscalls) => string): PodSyscalls[] {
  const byKey = new Map<string, { entry: PodSyscalls; names: Set<string> }>()
  for (const entry of entries) {
    if (isBlank(entry.pod_name)) continue
    const key = keyOf(entry)
    const one = byKey.get(key) ?? { entry, names: new Set() }
    byKey.set(key, one)
    for (const name of entry.syscalls) if (!isBlank(name)) one.names.add(name)
    // Canonical times sort as text.
    if (entry.time_stamp >= one.entry.time_stamp) one.entry = entry
  }
  return [...byKey.values()].map(({ entry, names }) => ({ ...entry, syscalls: [...names] }))
}
