/** Answers "does this vulnerability run anywhere" and claims no more than is known. */

import { counted } from '../../parts/plural.ts'

export interface Known {
  /** Images of the inventory that have it; null if no report of an image in the inventory lists it. */
  readonly images: number | null
  /** Workloads with a running container of such an image. */
  readonly runningWorkloads: number
  /** Workloads that run or ran such an image. */
  readonly workloads: number
  /** Whether the lists were cut, so that the counts are lower limits. */
  readonly isCut: boolean
  /** Whether every running image was matched by its tag alone, not by its digest. */
  readonly isGuess: boolean
}

/** Number of running images, and of those without a report; null if they could not be counted. */
export interface Scanned {
  readonly running: number
  readonly withoutReport: number
  /** The newest report of these is more than 30 days old, and may not know the vulnerability. */
  readonly withOldReport: number
}

export interface Verdict {
  readonly word: 'Running' | 'Not seen running' | 'Not known'
  readonly tone: 'bad' | 'warn' | 'good'
  readonly sentences: readonly string[]
}

export function verdictOf(known: Known, scanned: Scanned | null): Verdict {
  const { images, runningWorkloads, workloads, isCut, isGuess } = known
  if (runningWorkloads > 0) {
    const atLeast = isCut ? 'at least ' : ''
    const running = `${atLeast}${counted(runningWorkloads, 'workload')} ${
      runningWorkloads === 1 ? 'runs' : 'run'
    } a container of an image that has it.`
    return {
      word: 'Running',
      tone: 'bad',
      sentences: [
        capital(running),
        ...(isGuess ? ['All of it rests on tags of images, which may have moved.'] : []),
        ...(isWhole(scanned) ? [] : [gapOf(scanned, 'It may be in more')]),
      ],
    }
  }
  const found =
    images === null
      ? 'No report of an image in the inventory names it.'
      : `${isCut ? 'At least ' : ''}${counted(images, 'image')} ${images === 1 ? 'has' : 'have'} it, which ` +
        `${counted(workloads, 'workload')} ran; no container was seen to run ${images === 1 ? 'it' : 'one'} now.`
  if (!isWhole(scanned) || scanned.running === 0)
    return { word: 'Not known', tone: 'warn', sentences: [found, gapOf(scanned, 'It may run in them')] }
  return {
    word: 'Not seen running',
    tone: 'good',
    sentences: [found, `Each of ${counted(scanned.running, 'running image')} has a report of the last 30 days.`],
  }
}

const isWhole = (scanned: Scanned | null): scanned is Scanned =>
  scanned !== null && scanned.withoutReport + scanned.withOldReport === 0

function gapOf(scanned: Scanned | null, so: string): string {
  if (scanned === null) return 'How many running images have no report could not be counted.'
  if (scanned.running === 0) return 'No running image is known: agents have posted no containers.'
  const gap = (count: number, what: string) =>
    count === 0 ? [] : [`${counted(count, 'running image')} ${count === 1 ? 'has' : 'have'} ${what}`]
  const gaps = [...gap(scanned.withoutReport, 'no report'), ...gap(scanned.withOldReport, 'none of the last 30 days')]
  return `${so}: ${gaps.join(', ')}.`
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
