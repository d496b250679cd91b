import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'

/**
 * What a payload of so many bytes comes to at most: one part of it as parsed, and its rows as text, in pieces and whole. Half as much again as
 * the largest were seen to need: what V8 may take it takes.
 */
const HEAP_PER_INFLATED_BYTE = 3
const HEAP_BESIDE_MIB = 20
const MIB = 1024 * 1024
/** Small: most of what is young is dead, and what it takes is taken in every thread again. */
const YOUNG_MIB = 8

/** The folder's thread that reads payloads, with a heap for the largest. */
export function startThread(maxInflatedBytes: number): Worker {
  const resourceLimits = {
    maxOldGenerationSizeMb: HEAP_BESIDE_MIB + Math.ceil((maxInflatedBytes * HEAP_PER_INFLATED_BYTE) / MIB),
    maxYoungGenerationSizeMb: YOUNG_MIB,
  }
  return start(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), resourceLimits)
}

/** What the process was told to load first is not for its threads; from source they need a loader, which Node 20 does not hand on. */
export function start(
  file: URL,
  resourceLimits: NonNullable<ConstructorParameters<typeof Worker>[1]>['resourceLimits'] = {},
): Worker {
  if (extname(file.pathname) !== '.ts') return new Worker(file, { execArgv: [], resourceLimits })
  const load = `import('tsx/esm/api').then(({ register }) => { register(); return import(${JSON.stringify(file.href)}) })`
  return new Worker(load, { eval: true, execArgv: [], resourceLimits })
}
