/**
 * The messages of findings. Each text follows the name of the victim. Names come from agents and may contain any
 * characters, so unprintable ones are replaced.
 */
import { WINDOW_MINUTES } from './contract.ts'
import type { Container } from './rows.ts'

const BYTES_PER_MIB = 1024 * 1024
const MILLIS_PER_CORE = 1_000

/** Characters that end a line, control a terminal or change the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu

const name = (text: string) => text.replace(UNPRINTABLE, ' ')
const percent = (share: number) => `${Math.round(share * 100)}%`
const cores = (millis: number) => `${(millis / MILLIS_PER_CORE).toFixed(1)} cores`
const mib = (bytes: number) => `${Math.trunc(bytes / BYTES_PER_MIB)} MiB`

export const sentence = (victim: Container, said: string): string =>
  `${name(victim.namespace)}/${name(victim.podName)} ${said}.`

export function throttled(ratio: number, limitMillis: number | null): string {
  const cause = limitMillis === null ? 'a quota' : `its own limit of ${cores(limitMillis)}`
  return `was throttled ${percent(ratio)} of the time by ${cause}: raise the limit or lower what it takes`
}

const WAITS = 'waits for CPU'

export const contended = {
  withoutBlame: `${WAITS}, and the scheduler blames nobody for it`,
  beyondCount: `${WAITS} for more groups than are weighed, so that nobody can be named`,
  unattributed: (share: number) => `${WAITS}, and ${percent(share)} of it cannot be attributed to anybody`,
  byMany: (heaviest: string, share: number) =>
    `${WAITS} with nobody dominating: the heaviest, ${name(heaviest)}, accounts for ${percent(share)}`,
  byUntracked: (ref: string, share: number) =>
    `${WAITS}, ${percent(share)} of it for ${name(ref)}, which is not tracked`,
  byModest: (ref: string, share: number, requestMillis: number) =>
    `${WAITS}, ${percent(share)} of it for ${name(ref)}, which stays within its request of ${cores(requestMillis)}`,
  byUnclassified: (ref: string, share: number) =>
    `${WAITS}, ${percent(share)} of it for the unclassified group ${name(ref)}`,
}

export const noisy = {
  optedOut: (ref: string, share: number) =>
    `${WAITS}, ${percent(share)} of it for ${name(ref)}, which has opted out of sampling`,
  greedy: (ref: string, share: number, usageMillis: number, requestMillis: number | null) =>
    `${WAITS}, ${percent(share)} of it for ${name(ref)}, which takes ${cores(usageMillis)} ` +
    (requestMillis === null ? 'with no request' : `against a request of ${cores(requestMillis)}`),
  outside: (kind: 'system' | 'kernel', ref: string, share: number) =>
    `${WAITS}, ${percent(share)} of it for ${kind === 'system' ? `the system unit ${name(ref)}` : 'the kernel'}`,
}

const PRESSED = 'is short of memory on a node under memory pressure'

export const pressed = {
  byNeighbor: (ref: string, share: number, overBytes: number) =>
    `${PRESSED}: ${name(ref)} grows and is ${mib(overBytes)} beyond its request, ${percent(share)} of what is ` +
    'beyond requests there (a heuristic)',
  byNobody: `${PRESSED}, and nobody accounts for it`,
}

export const thrashing = (limitBytes: number, hits: number): string =>
  `is held back by its own memory limit of ${mib(limitBytes)}, hit ${hits} times in ${WINDOW_MINUTES} minutes: ` +
  'raise the limit or lower what it takes'
