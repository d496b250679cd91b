/**
 * The templates of `kubectl -o jsonpath=` (https://kubernetes.io/docs/reference/kubectl/jsonpath/): text, paths in
 * braces, `range` and `end`. What a path does not find is left out; several values have blanks between them.
 */
import { EXIT, Failure } from '../failure.ts'

type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly steps: readonly Step[] }
  | { readonly kind: 'range'; readonly steps: readonly Step[]; readonly inner: readonly Node[] }

/** Leads from some values to others; `root` is the whole answer. */
type Step = (values: readonly unknown[]) => readonly unknown[]

const OPERATORS = ['==', '!=', '<=', '>=', '<', '>'] as const
type Operator = (typeof OPERATORS)[number]

type Clean = (text: string) => string

/** `clean` is for the values, not for the text of the template. @throws Failure for a template that is not valid */
export function jsonPath(template: string, clean: Clean = (text) => text): (answer: unknown) => string {
  // An expression without braces is one path, as in kubectl.
  const nodes = new Parser(/[{}]/.test(template) ? template : `{${template.replace(/^(?![.$@[])/, '.')}}`).nodes()
  return (answer) => textOf(nodes, answer, clean)
}

function textOf(nodes: readonly Node[], value: unknown, clean: Clean): string {
  let text = ''
  for (const node of nodes) {
    if (node.kind === 'text') text += node.text
    else if (node.kind === 'path') text += follow(node.steps, value).map(shown).map(clean).join(' ')
    else for (const one of follow(node.steps, value)) text += textOf(node.inner, one, clean)
  }
  return text
}

const follow = (steps: readonly Step[], value: unknown): readonly unknown[] =>
  steps.reduce<readonly unknown[]>((values, step) => step(values), [value])

const shown = (value: unknown): string =>
  typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value)

const childrenOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : typeof value === 'object' && value !== null ? Object.values(value) : []

const member =
  (name: string): Step =>
  (values) =>
    values.flatMap((value) => {
      const isThere = typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, name)
      return isThere ? [(value as Record<string, unknown>)[name]] : []
    })

const all: Step = (values) => values.flatMap(childrenOf)

function everyBelow(value: unknown): readonly unknown[] {
  return [value, ...childrenOf(value).flatMap(everyBelow)]
}

const element =
  (at: number): Step =>
  (values) =>
    values.flatMap((value) => (Array.isArray(value) && value.at(at) !== undefined ? [value.at(at)] : []))

const slice =
  (from: number | undefined, to: number | undefined): Step =>
  (values) =>
    values.flatMap((value) => (Array.isArray(value) ? value.slice(from, to) : []))

const filter =
  (passes: (value: unknown) => boolean): Step =>
  (values) =>
    values.flatMap(childrenOf).filter(passes)

function compare(left: unknown, operator: Operator, right: unknown): boolean {
  if (operator === '==') return left === right
  if (operator === '!=') return left !== right
  if (typeof left !== typeof right || (typeof left !== 'number' && typeof left !== 'string')) return false
  const [a, b] = [left, right as typeof left]
  if (operator === '<') return a < b
  if (operator === '>') return a > b
  return operator === '<=' ? a <= b : a >= b
}

class Parser {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  nodes(isRange = false): Node[] {
    const nodes: Node[] = []
    while (this.#at < this.#text.length) {
      const text = this.#take(/[^{}]+/y)
      if (text !== undefined) nodes.push({ kind: 'text', text })
      else if (this.#take(/\{\s*end\s*\}/y) !== undefined) {
        if (isRange) return nodes
        throw this.#fault('`end` without `range`')
      } else if (this.#take(/\{\s*range\s+/y) !== undefined) {
        const steps = this.#path()
        this.#expect(/\s*\}/y, '}')
        nodes.push({ kind: 'range', steps, inner: this.nodes(true) })
      } else if (this.#take(/\{\s*/y) !== undefined) nodes.push(...this.#inBraces())
      else throw this.#fault('expected {')
    }
    if (isRange) throw this.#fault('expected {end}')
    return nodes
  }

  #inBraces(): Node[] {
    const nodes: Node[] = []
    while (this.#take(/\s*\}/y) === undefined) {
      this.#take(/\s+/y)
      const literal = this.#literal()
      if (typeof literal === 'string') nodes.push({ kind: 'text', text: literal })
      else nodes.push({ kind: 'path', steps: this.#path() })
    }
    return nodes
  }

  #path(): Step[] {
    const steps: Step[] = []
    const begin = this.#at
    this.#take(/[$@]/y)
    for (;;) {
      const name = this.#take(/\.\.?(?:\*|(?:[\w\-/]|\\.)+)|\.(?=[[\s})]|$)/y)
      if (name !== undefined) {
        if (name.startsWith('..')) steps.push((values) => values.flatMap(everyBelow))
        const key = name.replace(/^\.+/, '').replace(/\\(.)/g, '$1')
        if (key === '*') steps.push(all)
        else if (key !== '') steps.push(member(key))
      } else if (this.#take(/\[/y) !== undefined) steps.push(this.#inBrackets())
      else break
    }
    if (this.#at === begin) throw this.#fault('expected a path, such as .items[*].name')
    return steps
  }

  #inBrackets(): Step {
    const name = this.#take(/'[^']*'|"[^"]*"/y)
    const range = name === undefined ? this.#take(/-?\d*:-?\d*/y) : undefined
    const index = name === undefined && range === undefined ? this.#take(/-?\d+|\*/y) : undefined
    if (name === undefined && range === undefined && index === undefined) return this.#filter()
    this.#expect(/\s*\]/y, ']')
    if (name !== undefined) return member(name.slice(1, -1))
    if (range !== undefined) {
      const [from, to] = range.split(':').map((one) => (one === '' ? undefined : Number(one)))
      return slice(from, to)
    }
    return index === '*' ? all : element(Number(index))
  }

  #filter(): Step {
    this.#expect(/\?\(\s*/y, '*, a number, a name in quotes or ?(...)')
    const steps = this.#path()
    const operator = this.#take(/\s*(?:==|!=|<=|>=|<|>)\s*/y)?.trim() as Operator | undefined
    if (operator === undefined) {
      this.#expect(/\s*\)\s*\]/y, ')]')
      return filter((value) => follow(steps, value).length > 0)
    }
    const wanted = this.#literal()
    if (wanted === undefined) throw this.#fault('expected a text in quotes, a number, true or false')
    this.#expect(/\s*\)\s*\]/y, ')]')
    return filter((value) => {
      const found = follow(steps, value)
      return found.length > 0 && compare(found[0], operator, wanted)
    })
  }

  /** Undefined if there is none. */
  #literal(): string | number | boolean | undefined {
    const quoted = this.#take(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y)
    if (quoted !== undefined) return unescaped(quoted.slice(1, -1))
    const word = this.#take(/-?\d+(?:\.\d+)?|true|false/y)
    if (word === undefined) return undefined
    return word === 'true' || (word === 'false' ? false : Number(word))
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #expect(pattern: RegExp, what: string): void {
    if (this.#take(pattern) === undefined) throw this.#fault(`expected ${what}`)
  }

  #fault(says: string): Failure {
    return new Failure(`--output jsonpath: ${says}, at character ${this.#at + 1} of ${this.#text}`, EXIT.usage)
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' }
const unescaped = (text: string): string => text.replace(/\\(.)/g, (_, one: string) => ESCAPES[one] ?? one)
