/** Hits of a search: what each is, its identity for other commands, and the command that goes on. */
import { imageText, shortDigest } from '../output/words.ts'

interface Shared {
  readonly running: boolean | null
  readonly match: string
  readonly href: string
}

export type Hit = Shared &
  (
    | { readonly type: 'vulnerability'; readonly id: string }
    | { readonly type: 'package'; readonly name: string | null; readonly purl: string | null }
    | {
        readonly type: 'image'
        readonly digest: string
        readonly repository: string | null
        readonly tags: readonly string[]
      }
    | { readonly type: 'repository'; readonly repository: string }
    | { readonly type: 'workload'; readonly namespace: string; readonly kind: string; readonly name: string }
    | {
        readonly type: 'pod'
        readonly namespace: string | null
        readonly name: string
        readonly workloadKind: string | null
        readonly workloadName: string | null
      }
    | {
        readonly type: 'service'
        readonly namespace: string | null
        readonly name: string | null
        readonly address: string
      }
    | { readonly type: 'namespace'; readonly namespace: string }
    | { readonly type: 'node'; readonly name: string }
    | { readonly type: 'address'; readonly address: string }
  )

const path = (...parts: readonly (string | null)[]): string => parts.filter((part) => part !== null).join('/')

export function nameOf(hit: Hit): string {
  switch (hit.type) {
    case 'vulnerability':
      return hit.id
    case 'package':
      return hit.purl ?? hit.name ?? ''
    case 'image':
      return hit.digest
    case 'repository':
      return hit.repository
    case 'workload':
      return path(hit.namespace, hit.kind, hit.name)
    case 'pod':
      return path(hit.namespace, 'Pod', hit.name)
    case 'service':
      return hit.name === null ? hit.address : path(hit.namespace, 'Service', hit.name)
    case 'namespace':
      return hit.namespace
    case 'node':
      return hit.name
    case 'address':
      return hit.address
  }
}

export const whatOf = (hit: Hit): string => (hit.type === 'image' ? imageText(hit) : nameOf(hit))

/** The command that goes on, or the route. A name is anybody's: the shell takes it whole, and it never is a flag. */
export function nextOf(hit: Hit): string {
  const command = commandOf(hit)
  const words = command === null || command.at(-1)!.startsWith('-') ? ['get', hit.href] : command
  return ['ctb', ...words].map(shellWord).join(' ')
}

function commandOf(hit: Hit): readonly string[] | null {
  switch (hit.type) {
    case 'vulnerability':
      return ['exposure', hit.id]
    case 'package':
      return ['components', ...(hit.purl === null ? ['--name', hit.name ?? ''] : ['--purl', hit.purl])]
    case 'image':
      return ['vulns', shortDigest(hit.digest)]
    case 'repository':
      return ['images', '--repository', hit.repository]
    case 'workload':
      return ['workload', nameOf(hit)]
    case 'pod':
      return hit.workloadName === null ? null : ['workload', path(hit.namespace, hit.workloadKind, hit.workloadName)]
    case 'namespace':
      return ['changes', '-n', hit.namespace]
    default:
      return null
  }
}

const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
