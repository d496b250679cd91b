import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'

/**
 * Most heap for each byte of an unpacked payload: one parsed part of it, and its rows as text, in pieces and whole.
 * Half as much again as the largest payloads needed when measured, because V8 uses the memory that it may use.
 */
const HEAP_PER_INFLATED_BYTE = 3
const HEAP_BESIDE_MIB = 20
const MIB = 1024 * 1024
/** A small young generation is enough, because most young objects are dead; every thread pays for its size again. */
const YOUNG_MIB = 8

/** Starts a thread of worker.ts that reads payloads, with a heap for the largest one. */
export function startThread(maxInflatedBytes: number): Worker {
  const resourceLimits = {
    maxOldGenerationSizeMb: HEAP_BESIDE_MIB + Math.ceil((maxInflatedBytes * HEAP_PER_INFLATED_BYTE) / MIB),
    maxYoungGenerationSizeMb: YOUNG_MIB,
  }
  return start(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), resourceLimits)
}

/**
 * Starts a thread without the `--import` and `--require` options of the process. From TypeScript sources a thread needs
 * a loader, which Node 20 does not pass on.
 */
export function start(
  file: URL,
  resourceLimits: NonNullable<ConstructorParameters<typeof Worker>[1]>['resourceLimits'] = {},
): Worker {
  if (extname(file.pathname) !== '.ts') return new Worker(file, { execArgv: [], resourceLimits })
  const url = JSON.stringify(file.href)
  const load = `import('tsx/esm/api').then(({ register }) => { register(); return import(${url}) })`
  return new Worker(load, { eval: true, execArgv: [], resourceLimits })
}
