/** Judges a pod and its containers together. */
import type { Check, Failing, Level } from '../record/pod-security.ts'
import { containerFailing, type JudgedContext, levelOf, lowest, podFailing, unjudgedChecks } from './checks.ts'
import type { PodBlock } from './contexts.ts'

export interface JudgedPart {
  readonly level: Level
  readonly failing: readonly Failing[]
  /** Checks that were not made because they need fields of the pod, which are not known. */
  readonly unjudged: readonly Check[]
}

export interface Judgement<C extends JudgedContext = JudgedContext> {
  /** The lowest level of the pod and of all containers. */
  readonly level: Level
  readonly pod: JudgedPart
  readonly containers: readonly (C & JudgedPart)[]
}

const CHECKS_OF_POD: readonly Check[] = ['hostNamespaces', 'seccompBaseline', 'runAsNonRoot', 'runAsUser']

export function judgeContexts<C extends JudgedContext>(block: PodBlock, contexts: readonly C[]): Judgement<C> {
  const pod = partOf(podFailing(block), block.known ? [] : CHECKS_OF_POD)
  const containers = contexts.map((context) => ({
    ...context,
    ...partOf(containerFailing(context, block), unjudgedChecks(context.securityContext, block)),
  }))
  return { level: lowest([pod, ...containers].map(({ level }) => level)), pod, containers }
}

const partOf = (failing: readonly Failing[], unjudged: readonly Check[]): JudgedPart => ({
  level: levelOf(failing),
  failing,
  unjudged,
})
