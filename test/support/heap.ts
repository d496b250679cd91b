import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
// Once: a context is a large object itself.
const gc = runInNewContext('gc') as (options: { type: 'major' | 'minor'; execution: 'sync' }) => void

/** Collects garbage: all of it, or only among the young objects. */
export const collect = (type: 'major' | 'minor') => gc({ type, execution: 'sync' })

/** What the objects that have outlived young collections take, dead ones among them, in bytes. */
const oldBytes = () =>
  getHeapSpaceStatistics()
    .filter(({ space_name }) => space_name === 'old_space' || space_name === 'large_object_space')
    .reduce((sum, space) => sum + space.space_used_size, 0)

/**
 * The bytes that so many rounds of `step` leave among the old objects, where only a full collection finds those that are dead.
 * Young ones are collected every few rounds, so that what lives on from one round to the next is seen.
 */
export async function promotedBytes(rounds: number, step: (round: number) => Promise<unknown>): Promise<number> {
  for (let i = 0; i < rounds; i++) await step(i)
  collect('major')
  const before = oldBytes()
  for (let i = 0; i < rounds; i++) {
    await step(i)
    if (i % 10 === 9) collect('minor')
  }
  collect('minor')
  collect('minor')
  return oldBytes() - before
}
