/** Samples as a node posts them. */
import { type Fields, sample, tick } from '../compute/posts.ts'

export const CONTAINERS = 15

/** Post number `n` of a node: its rows and its node contain `n`. */
export function post(node: string, n: number): Fields {
  const containers = Array.from({ length: CONTAINERS }, (_, i) =>
    sample({ pod_name: `${node}-${i}`, namespace: node, memory: { current: n, refault: n } }),
  )
  return tick(n % 2 ? containers : containers.reverse(), { node, ctxt_per_sec: n })
}
