import { createHash } from 'node:crypto'
import { isDnsName, MAX_DNS_NAME_CHARS } from '../../seccomp/names.ts'
import type { Workload } from '../facts.ts'
import { workloadText } from '../pods.ts'

/** Kinds of Kubernetes itself; others might differ from them, or from each other, in capital letters alone. */
const KINDS = ['CronJob', 'DaemonSet', 'Deployment', 'Job', 'Pod', 'ReplicaSet', 'ReplicationController', 'StatefulSet']
const HASH_CHARS = 8

/**
 * The name of the policy of a workload: a DNS subdomain that no other workload of the namespace has. Where letters had
 * to be changed, a hash of the original follows.
 */
export function nameOf(workload: Workload): string {
  const plain = `${workload.name}-${workload.kind.toLowerCase()}`
  if (isDnsName(plain) && KINDS.includes(workload.kind)) return plain
  const hash = createHash('sha256').update(workloadText(workload)).digest('hex').slice(0, HASH_CHARS)
  const labels = plain
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, MAX_DNS_NAME_CHARS - HASH_CHARS - 1)
    .split('.')
    .map((one) => one.replace(/^-+|-+$/g, ''))
  return [labels.filter((one) => one !== '').join('.'), hash].filter((one) => one !== '').join('-')
}
