/** Reads a text that a person pastes into a search box as all that it may stand for (docs/contract.md#search). */
import { isIP } from 'node:net'
import { canonicalAddress } from '../net/address.ts'
import { VULNERABILITY } from '../supply-chain/exposure.ts'
import { normalRepository } from '../supply-chain/repository.ts'
import { isPurl, lowerAscii, type Purl, readPurl } from './purl.ts'

/** Shorter texts are compared whole: too much begins with a single character. */
export const MIN_PREFIX_CHARS = 2
const MIN_DIGEST_DIGITS = 6
const MAX_DIGEST_DIGITS = 128
/** Longer texts are no name of Kubernetes. */
const MAX_NAME_CHARS = 253
const MAX_SEGMENTS = 3

/** A name in a namespace, of a kind; null is any. */
export interface Named {
  readonly namespace: string | null
  /** In lower case. */
  readonly kind: string | null
  readonly name: string
}

export interface Repository {
  readonly exact: readonly string[]
  /** Null where the text names the whole repository. */
  readonly suffix: string | null
  readonly tag: string | null
}

/** The readings of a text; null where it cannot be one. */
export interface Question {
  readonly prefixes: boolean
  readonly vulnerability: string | null
  readonly packageName: string | null
  readonly purl: Purl | null
  /** Beginnings of digests. */
  readonly digests: readonly string[]
  readonly repository: Repository | null
  readonly workloads: readonly Named[]
  readonly pods: readonly Named[]
  readonly services: readonly Named[]
  readonly namespaces: readonly string[]
  readonly nodes: readonly string[]
  readonly address: string | null
}

/** Kinds as `kubectl` takes them. */
const KINDS: Readonly<Record<string, string>> = {
  ...{ po: 'pod', pods: 'pod', svc: 'service', services: 'service', ns: 'namespace', namespaces: 'namespace' },
  ...{ no: 'node', nodes: 'node', deploy: 'deployment', deployments: 'deployment', rs: 'replicaset' },
  ...{ replicasets: 'replicaset', sts: 'statefulset', statefulsets: 'statefulset', ds: 'daemonset' },
  ...{ daemonsets: 'daemonset', cj: 'cronjob', cronjobs: 'cronjob', jobs: 'job' },
}

/** `Deployments.apps` is `deployment`. */
function kindOf(word: string): string {
  const kind = lowerAscii(word).replace(/\..*$/s, '')
  return KINDS[kind] ?? kind
}

const HUBS = /^(?:docker\.io|index\.docker\.io|registry-1\.docker\.io)\//

/** Reads a text without blanks around it. */
export function readQuestion(text: string): Question {
  const prefixes = text.length >= MIN_PREFIX_CHARS
  const none: Question = {
    ...{ prefixes, vulnerability: null, packageName: null, purl: null, digests: [], repository: null, address: null },
    ...{ workloads: [], pods: [], services: [], namespaces: [], nodes: [] },
  }
  if (isPurl(text)) return { ...none, purl: readPurl(text) }
  const address = addressOf(text)
  if (address !== null) return { ...none, address, packageName: lowerAscii(text) }
  return {
    ...none,
    vulnerability: VULNERABILITY.test(text) ? text : null,
    packageName: lowerAscii(text),
    digests: digestsOf(text),
    repository: repositoryOf(text),
    ...namesOf(text),
  }
}

/** An address, also with a port behind it or in brackets. */
function addressOf(text: string): string | null {
  const [, bracketed] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? []
  const address = bracketed ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text
  return isIP(address) !== 0 && !address.includes('%') ? canonicalAddress(address) : null
}

const DIGEST = new RegExp(`^(?:(sha256|sha512):)?([0-9a-f]{${MIN_DIGEST_DIGITS},${MAX_DIGEST_DIGITS}})$`)

/** The beginnings of a digest, which may follow the `@` of a reference. */
function digestsOf(text: string): string[] {
  const [, algorithm, digits] = DIGEST.exec(lowerAscii(text.slice(text.lastIndexOf('@') + 1))) ?? []
  if (digits === undefined) return []
  return algorithm === undefined ? [`sha256:${digits}`, `sha512:${digits}`] : [`${algorithm}:${digits}`]
}

function repositoryOf(text: string): Repository | null {
  const [reference, ...digest] = lowerAscii(text.replace(/^[a-z-]+:\/\//i, '')).split('@')
  const [, name, tag] = /^(.*?)(?::([^:/]*))?$/s.exec(reference!)!
  const repository = name!.replace(/^\/+|\/+$/g, '')
  if (repository === '' || digest.length > 1 || (digest.length === 0 && DIGEST.test(reference!))) return null
  const asked = { tag: tag === undefined || tag === '' ? null : tagOf(text, tag) }
  const inHub = repository.replace(HUBS, '')
  if (inHub === repository) {
    const normal = normalRepository(undefined, repository)
    return { exact: normal === undefined ? [repository] : [repository, normal], suffix: repository, ...asked }
  }
  const short = inHub.replace(/^library\//, '')
  const official = short.includes('/') ? [] : [short, `library/${short}`, `docker.io/library/${short}`]
  return { exact: [repository, inHub, `docker.io/${inHub}`, ...official], suffix: null, ...asked }
}

/** The tag as it was written: tags have capitals. */
function tagOf(text: string, tag: string): string {
  const at = lowerAscii(text).lastIndexOf(`:${tag}`) + 1
  return text.slice(at, at + tag.length)
}

/** Names of Kubernetes have no capitals, but nothing keeps agents from sending some. */
const spellings = (name: string) => [...new Set([name, lowerAscii(name)])]

/** The kinds of things that the segments of a text may name. */
function namesOf(text: string): Pick<Question, 'workloads' | 'pods' | 'services' | 'namespaces' | 'nodes'> {
  const names = { workloads: [] as Named[], pods: [] as Named[], services: [] as Named[] }
  const namespaces: string[] = []
  const nodes: string[] = []
  const segments = text.split('/')
  if (segments.length > MAX_SEGMENTS || segments.some((one) => one === '' || one.length > MAX_NAME_CHARS))
    return { ...names, namespaces, nodes }

  const add = (namespace: string | null, kind: string | null, asked: string) => {
    for (const name of spellings(asked)) {
      if (kind === 'namespace' || kind === 'node') {
        if (namespace === null) (kind === 'node' ? nodes : namespaces).push(name)
      } else if (kind === 'service') names.services.push({ namespace, kind: null, name })
      else names.workloads.push({ namespace, kind, name })
      if (kind === 'pod') names.pods.push({ namespace, kind: null, name })
    }
  }
  const anyOf = (namespace: string | null, name: string) => {
    add(namespace, null, name)
    add(namespace, 'service', name)
    for (const spelt of spellings(name)) names.pods.push({ namespace, kind: null, name: spelt })
  }
  const [first, second, third] = segments as [string, string?, string?]
  if (third !== undefined) add(first, kindOf(second!), third)
  else if (second !== undefined) {
    anyOf(first, second)
    add(null, kindOf(first), second)
  } else {
    anyOf(null, first)
    add(null, 'namespace', first)
    add(null, 'node', first)
    // A service as pods call it.
    const [, name, namespace] = /^([^.]+)\.([^.]+)\.svc(?:\..*)?$/.exec(first) ?? []
    if (namespace !== undefined) add(namespace, 'service', name!)
  }
  return { ...names, namespaces, nodes }
}
