/** Asks cyclonus, an independent evaluator of NetworkPolicies (scripts/cyclonus/main.go). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Flow, KnownAddress, KnownPod, NetworkPolicyObject } from './policy-values.ts'

interface End {
  readonly ip: string
  readonly pod: Pick<KnownPod, 'namespace' | 'namespaceLabels' | 'labels'> | null
}

/** A connection as cyclonus knows it: between two addresses, to a port that has one name or, as an empty text, none. */
export interface Question {
  readonly policies: readonly NetworkPolicyObject[]
  readonly from: End
  readonly to: End
  readonly port: number
  readonly portName: string
  readonly protocol: string
}

export interface Answer {
  readonly ingress: boolean
  readonly egress: boolean
  readonly allowed: boolean
  readonly ingressIsolated: boolean
  readonly egressIsolated: boolean
}

export interface Asked {
  readonly question: Question
  readonly answer: Answer
}

export interface Cyclonus {
  /** A list for each flow, because cyclonus knows less of a flow than we do (`questionsOf`). */
  ask(policies: readonly NetworkPolicyObject[], flows: readonly Flow[]): Promise<readonly Asked[][]>
  stop(): Promise<void>
}

/** Starts the program, which answers until it is stopped. */
export function startCyclonus(path: string): Cyclonus {
  const child = spawn(path, { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  child.stdin.on('error', () => {}) // after an exit, which the missing answer tells
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (question: Question): Promise<Asked> => {
    const { done, value } = await lines.next()
    if (done) throw new Error('cyclonus has ended; it printed why')
    return { question, answer: JSON.parse(value) }
  }
  return {
    async ask(policies, flows) {
      const questions = flows.map((flow) => questionsOf(policies, flow))
      child.stdin.write(questions.flatMap((each) => each.map((one) => `${JSON.stringify(one)}\n`)).join(''))
      const asked: Asked[][] = []
      for (const each of questions) {
        const answers: Asked[] = []
        for (const question of each) answers.push(await next(question))
        asked.push(answers)
      }
      return asked
    },
    async stop() {
      child.stdin.end()
      await exit
    },
  }
}

/** Each address of both ends is in a question, and each of these is asked with each name of the port. */
function questionsOf(policies: readonly NetworkPolicyObject[], { from, to, port, protocol }: Flow): Question[] {
  const names = to.type === 'pod' ? Object.keys(to.namedPorts).filter((name) => to.namedPorts[name] === port) : []
  const [sources, targets] = [addressesOf(from), addressesOf(to)]
  return Array.from({ length: Math.max(sources.length, targets.length) }, (_, i) => ({
    from: endOf(from, sources[i % sources.length]!),
    to: endOf(to, targets[i % targets.length]!),
  })).flatMap((ends) =>
    (names.length > 0 ? names : ['']).map((portName) => ({ policies, ...ends, port, portName, protocol })),
  )
}

const addressesOf = (end: KnownPod | KnownAddress) => (end.type === 'pod' ? end.ips : [end.ip])

const endOf = (end: KnownPod | KnownAddress, ip: string): End => ({
  ip,
  pod:
    end.type === 'pod' ? { namespace: end.namespace, namespaceLabels: end.namespaceLabels, labels: end.labels } : null,
})
