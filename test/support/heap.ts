import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
// Made once, because a context is a large object itself.
const gc = runInNewContext('gc') as (options: {
  type: 'major' | 'minor'
  execution: 'sync' | 'async'
}) => Promise<void> | undefined

/** Collects all garbage, or only young objects. */
export const collect = (type: 'major' | 'minor') => void gc({ type, execution: 'sync' })

/**
 * Collects all garbage in a task of its own. While JavaScript waits for a collection, V8 may keep buffers that nothing
 * refers to, in one collection after the other: 20 MB of them were seen.
 */
export const collectAll = async () => gc({ type: 'major', execution: 'async' })

/** Bytes of objects that survived young collections, dead ones included. */
const oldBytes = () =>
  getHeapSpaceStatistics()
    .filter(({ space_name }) => space_name === 'old_space' || space_name === 'large_object_space')
    .reduce((sum, space) => sum + space.space_used_size, 0)

/**
 * The bytes that this many rounds of `step` leave among old objects, where only a full collection frees them. Young
 * objects are collected every few rounds, so that objects that live for several rounds become old.
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
